# expect: ok
import torch
import torch.nn.functional as F


def train_epoch(model, loader, optimizer, scaler, accum_freq, loss_fn):
    accum_images, accum_texts, accum_features = [], [], {}
    optimizer.zero_grad()
    for i, (images, texts) in enumerate(loader):
        with torch.no_grad():
            with torch.cuda.amp.autocast():
                out = model(images, texts)
                for key in ("image_features", "text_features"):
                    accum_features.setdefault(key, []).append(out[key])
            accum_images.append(images)
            accum_texts.append(texts)
        if (i + 1) % accum_freq > 0:
            continue
        optimizer.zero_grad()
        for j in range(accum_freq):
            with torch.cuda.amp.autocast():
                out = model(accum_images[j], accum_texts[j])
                inputs = {}
                for key, val in accum_features.items():
                    inputs[key] = torch.cat(val[:j] + [out[key]] + val[j + 1:])
                loss = loss_fn(**inputs, logit_scale=out["logit_scale"])
            scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        accum_images, accum_texts, accum_features = [], [], {}
