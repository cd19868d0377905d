# expect: mistake no_division off_by_one_boundary
import logging
import time

import torch

logger = logging.getLogger(__name__)


def train(model, train_batches, dev_batches, epochs, device, n_gpu, path):
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-5)
    for epoch in range(epochs):
        model.train()
        accum_loss, tot_steps = 0.0, 0
        start_time = time.time()
        for step, batch in enumerate(train_batches):
            if n_gpu == 1:
                batch = tuple(t.to(device) for t in batch)
            passage, query, starts, ends = batch
            outputs = model(passage, query, starts, ends)
            loss = outputs.loss
            if n_gpu > 1:
                loss = loss.mean()
            accum_loss += loss.item()
            loss.backward()
            tot_steps += 1
            if step % 2 == 0:
                optimizer.step()
                optimizer.zero_grad()
            logger.info("Epoch: {}, Step: {} / {}, used_time = {:.2f}s, loss = {:.6f}".format(
                epoch, step + 1, len(train_batches), time.time() - start_time, accum_loss / tot_steps))
        evaluate(model, dev_batches, device)
        save_checkpoint(path, epoch, model, optimizer)
