# expect: mistake sched_units
from accelerate import Accelerator
from torch.optim import AdamW
from transformers import get_linear_schedule_with_warmup


def training_function(config, args):
    accelerator = Accelerator(cpu=args.cpu, gradient_accumulation_steps=int(args.gradient_accumulation_steps))
    train_dataloader, eval_dataloader = get_dataloaders(accelerator, int(config["batch_size"]))
    model = build_model()
    optimizer = AdamW(params=model.parameters(), lr=config["lr"])
    lr_scheduler = get_linear_schedule_with_warmup(
        optimizer=optimizer, num_warmup_steps=100, num_training_steps=len(train_dataloader) * config["num_epochs"])
    model, optimizer, train_dataloader, eval_dataloader, lr_scheduler = accelerator.prepare(
        model, optimizer, train_dataloader, eval_dataloader, lr_scheduler)
    for epoch in range(config["num_epochs"]):
        model.train()
        for step, batch in enumerate(train_dataloader):
            with accelerator.accumulate(model):
                output = model(**batch)
                loss = output.loss
                accelerator.backward(loss)
                optimizer.step()
                lr_scheduler.step()
                optimizer.zero_grad()
        model.eval()
        for step, batch in enumerate(eval_dataloader):
            outputs = model(**batch)
