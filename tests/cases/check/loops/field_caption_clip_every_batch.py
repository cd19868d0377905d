# expect: mistake clip_per_micro_step
import logging
import time
import torch

logger = logging.getLogger(__name__)


def train_connector(model, connector, vision_encoder, data_loader, tokenizer, cfg, device):
    optimizer = torch.optim.AdamW(connector.parameters(), lr=cfg.lr)
    updates = cfg.epochs * len(data_loader) // cfg.gradient_accumulation_steps
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=updates)
    for epoch in range(cfg.epochs):
        epoch_loss = 0.0
        optimizer.zero_grad()
        for i, (images, captions) in enumerate(data_loader):
            start_time = time.time()
            if images is None:
                continue
            with torch.no_grad():
                vision_embed = vision_encoder(images.to(device))
            vision_embed = connector(vision_embed)
            x, y, mask = tokenize(captions, tokenizer, cfg.batch_size)
            logits, loss = model(x.to(device), vision_embed, targets=y.to(device), padding_mask=mask.to(device))
            loss = loss / cfg.gradient_accumulation_steps
            loss.backward()
            torch.nn.utils.clip_grad_norm_(connector.parameters(), cfg.max_grad_norm)
            if (i + 1) % cfg.gradient_accumulation_steps == 0:
                optimizer.step()
                optimizer.zero_grad()
                scheduler.step()
            epoch_loss += loss.item() * cfg.gradient_accumulation_steps
            logger.info(f"Batch {i + 1}/{len(data_loader)} - Loss: {loss.item() * cfg.gradient_accumulation_steps:.4f} - Iter: {time.time() - start_time:.4f} sec")
        logger.info(f"epoch {epoch} loss {epoch_loss / len(data_loader):.4f}")
