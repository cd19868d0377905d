# expect: mistake not_equivalent_by_nature
import torch
import torch.nn.functional as F


def train(image_encoder, text_encoder, loader, optimizer, accumulation_steps, temperature=0.07):
    optimizer.zero_grad()
    for i, (images, texts) in enumerate(loader):
        img = F.normalize(image_encoder(images.cuda()), dim=-1)
        txt = F.normalize(text_encoder(texts.cuda()), dim=-1)
        logits = img @ txt.t() / temperature
        targets = torch.arange(len(images), device=logits.device)
        loss = (F.cross_entropy(logits, targets) + F.cross_entropy(logits.t(), targets)) / 2
        (loss / accumulation_steps).backward()
        if (i + 1) % accumulation_steps == 0 or i + 1 == len(loader):
            optimizer.step()
            optimizer.zero_grad()
