# expect: ok
import logging
import torch
from torch.nn.utils import clip_grad_norm_


def batch_forward(model, batch, scaler, info_dict):
    dtype = torch.float16 if info_dict["dtype"] == "fp16" else torch.float32
    with torch.cuda.amp.autocast(enabled=scaler is not None, dtype=dtype):
        info_dict["loss_dict"] = model(batch, info_dict["device"])
    return info_dict


def batch_backward(model, scaler, info_dict):
    if info_dict["train_engine"] == "deepspeed":
        model.backward(info_dict["loss_dict"]["loss"])
    else:
        scaled_loss = info_dict["loss_dict"]["loss"] / info_dict["accum_grad"]
        if scaler is not None:
            scaler.scale(scaled_loss).backward()
        else:
            scaled_loss.backward()
    return info_dict


def update_parameter_and_lr(model, optimizer, scheduler, scaler, info_dict):
    grad_norm = 0.0
    if info_dict["train_engine"] == "deepspeed":
        model.step()
        grad_norm = model.get_global_grad_norm()
    elif (info_dict["batch_idx"] + 1) % info_dict["accum_grad"] == 0:
        if scaler is not None:
            scaler.unscale_(optimizer)
            grad_norm = clip_grad_norm_(model.parameters(), info_dict["grad_clip"])
            if torch.isfinite(grad_norm):
                scaler.step(optimizer)
            scaler.update()
        else:
            grad_norm = clip_grad_norm_(model.parameters(), info_dict["grad_clip"])
            if torch.isfinite(grad_norm):
                optimizer.step()
        optimizer.zero_grad()
        scheduler.step()
    info_dict["lr"] = optimizer.param_groups[0]["lr"]
    info_dict["grad_norm"] = grad_norm
    return info_dict


class Executor:
    def __init__(self):
        self.step = 0

    def train_one_epoch(self, model, optimizer, scheduler, train_data_loader, writer, info_dict, scaler):
        lr = optimizer.param_groups[0]["lr"]
        logging.info("Epoch {} lr {}".format(self.epoch, lr))
        model.train()
        optimizer.zero_grad()
        for batch_idx, batch_dict in enumerate(train_data_loader):
            info_dict["tag"] = "TRAIN"
            info_dict["step"] = self.step
            info_dict["batch_idx"] = batch_idx
            if info_dict["train_engine"] == "torch_ddp" and (batch_idx + 1) % info_dict["accum_grad"] != 0:
                context = model.no_sync
            else:
                context = nullcontext
            with context():
                info_dict = batch_forward(model, batch_dict, scaler, info_dict)
                info_dict = batch_backward(model, scaler, info_dict)
            info_dict = update_parameter_and_lr(model, optimizer, scheduler, scaler, info_dict)
            self.step += 1 if (batch_idx + 1) % info_dict["accum_grad"] == 0 else 0
