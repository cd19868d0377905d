# expect: mistake aux_loss_unscaled clip_per_micro_step clip_before_unscale log_factor
import torch
import torch.nn as nn


class VideoModel(nn.Module):
    def train_one_step(self, data):
        if self.accumulation_steps == 1 and self.batch_index == 0:
            self.zero_grad()
        _, loss, metrics = self._step(data, "train")
        loss = loss / self.accumulation_steps
        if self.fp16:
            self.scaler.scale(loss).backward()
        else:
            loss.backward()
        if self.clip_grad_norm is not None:
            torch.nn.utils.clip_grad_norm_(self.parameters(), self.clip_grad_norm)
        if self.config.adv_mode == "fgm":
            fgm = FGM(self.model, self.config.epsilon, self.config.emb_name)
            fgm.attack()
            _, adv_loss, metrics = self._step(data, "train")
            if self.fp16:
                self.scaler.scale(adv_loss).backward()
            else:
                adv_loss.backward()
            if self.clip_grad_norm is not None:
                torch.nn.utils.clip_grad_norm_(self.parameters(), self.clip_grad_norm)
            fgm.restore()
        if (self.batch_index + 1) % self.accumulation_steps == 0:
            if self.fp16:
                self.scaler.step(self.optimizer)
                self.scaler.update()
            else:
                self.optimizer.step()
            if self.scheduler:
                self.scheduler.step()
            if self.batch_index > 0:
                self.zero_grad()
        return loss, metrics

    def train_one_epoch(self, data_loader):
        self.train()
        losses = AverageMeter()
        if self.accumulation_steps > 1:
            self.optimizer.zero_grad()
        for b_idx, data in enumerate(data_loader):
            self.batch_index = b_idx
            loss, metrics = self.train_one_step(data)
            losses.update(loss.item() * self.accumulation_steps, data_loader.batch_size)
        return losses.avg
