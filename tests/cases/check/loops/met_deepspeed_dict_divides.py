# expect: mistake double_division log_factor
import deepspeed
from torch.utils.data import DataLoader

micro_batch_size = 2
ds_config = {
    "train_micro_batch_size_per_gpu": micro_batch_size,
    "gradient_accumulation_steps": 8,
    "optimizer": {"type": "AdamW", "params": {"lr": 1e-5}},
    "zero_optimization": {"stage": 2},
}


def main(model, dataset, collator, num_epochs=1):
    model_engine, _, _, _ = deepspeed.initialize(model=model, model_parameters=model.parameters(), config=ds_config)
    loader = DataLoader(dataset, shuffle=True, batch_size=micro_batch_size, collate_fn=collator)
    model_engine.train()
    for epoch in range(num_epochs):
        total_loss = 0
        for step, batch in enumerate(loader):
            batch = {key: value.to(model.device) for key, value in batch.items()}
            outputs = model_engine(**batch)
            loss = outputs.loss / ds_config["gradient_accumulation_steps"]
            model_engine.backward(loss)
            if (step + 1) % ds_config["gradient_accumulation_steps"] == 0:
                model_engine.step()
            total_loss += loss.item()
            if step % 2 == 0:
                print(f"Epoch {epoch + 1}, Step {step}, Loss: {loss.item()}")
        print(f"Epoch {epoch + 1}: {total_loss / len(loader)}")
