# expect: mistake tail_leak
from datetime import datetime

import lightning as L
import torch
from torch.utils.data import DataLoader


def train(dataset, build_model, global_batch_size=64, micro_batch_size=4, num_epochs=2):
    fabric = L.Fabric(devices=2, precision="bf16-true")
    fabric.launch()
    model = build_model()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5)
    model, optimizer = fabric.setup(model, optimizer)
    dataloader = fabric.setup_dataloaders(DataLoader(dataset, batch_size=micro_batch_size))
    model.train()
    gradient_accumulation_steps = max(1, global_batch_size // (micro_batch_size * fabric.world_size))
    optimizer.zero_grad(set_to_none=True)
    started = datetime.now()
    loss_sum, micro_count = 0.0, 0
    for epoch in range(num_epochs):
        for batch_idx, (inputs, targets) in enumerate(dataloader):
            is_accumulating = (batch_idx + 1) % gradient_accumulation_steps != 0
            with fabric.no_backward_sync(model, enabled=is_accumulating):
                logits = model(inputs)
                loss = chunked_cross_entropy(logits, targets, chunk_size=0)
                loss_sum += loss.detach().item()
                micro_count += 1
                loss = loss / gradient_accumulation_steps
                fabric.backward(loss)
            if not is_accumulating:
                optimizer.step()
                optimizer.zero_grad(set_to_none=True)
                fabric.print(f"{datetime.now() - started} loss {loss_sum / micro_count:.4f}")
                loss_sum, micro_count = 0.0, 0
