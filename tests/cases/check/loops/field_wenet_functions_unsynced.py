# expect: mistake no_sync_inverted
import logging
import torch
from contextlib import nullcontext
from torch.nn.utils import clip_grad_norm_


def batch_forward(model, batch, info_dict):
    info_dict["loss_dict"] = model(batch, info_dict["device"])
    return info_dict


def batch_backward(model, info_dict):
    scaled_loss = info_dict["loss_dict"]["loss"] / info_dict["accum_grad"]
    scaled_loss.backward()
    return info_dict


def update_parameter_and_lr(model, optimizer, scheduler, info_dict):
    if (info_dict["batch_idx"] + 1) % info_dict["accum_grad"] == 0:
        grad_norm = clip_grad_norm_(model.parameters(), info_dict["grad_clip"])
        if torch.isfinite(grad_norm):
            optimizer.step()
        optimizer.zero_grad()
        scheduler.step()
    return info_dict


class Executor:
    def train_one_epoch(self, model, optimizer, scheduler, loader, info_dict):
        model.train()
        optimizer.zero_grad()
        for batch_idx, batch_dict in enumerate(loader):
            info_dict["batch_idx"] = batch_idx
            context = model.no_sync if (batch_idx + 1) % info_dict["accum_grad"] == 0 else nullcontext
            with context():
                info_dict = batch_forward(model, batch_dict, info_dict)
                info_dict = batch_backward(model, info_dict)
            info_dict = update_parameter_and_lr(model, optimizer, scheduler, info_dict)
