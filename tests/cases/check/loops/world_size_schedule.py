# expect: mistake sched_world_size
from accelerate import Accelerator

def run(cfg, model, dataset):
    accelerator = Accelerator()
    loader = DataLoader(dataset, batch_size=cfg.batch_size)
    optimizer = AdamW(model.parameters(), lr=cfg.lr)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    updates = len(loader) * cfg.epochs
    scheduler = get_cosine_schedule_with_warmup(optimizer, num_warmup_steps=updates // 20, num_training_steps=updates)
    scheduler = accelerator.prepare(scheduler)
    for epoch in range(cfg.epochs):
        for batch in loader:
            loss = model(**batch).loss
            accelerator.backward(loss)
            optimizer.step()
            scheduler.step()
            optimizer.zero_grad()
