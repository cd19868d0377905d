# expect: ok
import torch
from accelerate import Accelerator


def main(args):
    tokenizer = AutoTokenizer.from_pretrained(args.model_name)
    model = EarlyExitModel(args.model_name, args.exit_layer)
    dataloader = build_dataloader(tokenizer, args.per_device_batch)
    accelerator = Accelerator(mixed_precision="bf16")
    model, dataloader = accelerator.prepare(model, dataloader)
    optimizer = torch.optim.AdamW(filter(lambda p: p.requires_grad, model.parameters()), lr=2e-4)
    for epoch in range(args.epochs):
        model.train()
        total_loss = 0.0
        for batch in dataloader:
            with accelerator.accumulate(model):
                outputs = model(batch["input_ids"], labels=batch["labels"], beta_exit=args.beta_exit)
                loss = outputs[0]
                accelerator.backward(loss)
                optimizer.step()
                optimizer.zero_grad()
                total_loss += loss.item()
        if accelerator.is_main_process:
            print(f"Epoch {epoch}: loss {total_loss/len(dataloader):.4f}")
