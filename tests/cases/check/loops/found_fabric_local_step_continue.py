# expect: ok
import torch
import lightning as pl


class Runner:
    def train(self, fabric, config, optimizer, scheduler):
        local_step = global_step = 0
        grad_accum_steps = config.trainer.accumulate_grad_batches
        grad_clip_val = config.trainer.gradient_clip_val
        should_stop = False
        current_epoch = 0
        loss_rec = LossRecorder()
        optimizer.zero_grad(set_to_none=True)
        while not should_stop:
            assert len(self.dataloader) > 0, "Dataloader is empty, please check your dataset"
            for batch_idx, batch in enumerate(self.dataloader):
                local_step += 1
                is_accumulating = local_step % grad_accum_steps != 0
                with fabric.no_backward_sync(self.model, enabled=is_accumulating):
                    loss = self.model(batch)
                    fabric.backward(loss / grad_accum_steps)
                if fabric.is_global_zero:
                    loss_rec.add(epoch=current_epoch, step=local_step, loss=loss.item())
                if is_accumulating:
                    continue
                if grad_clip_val > 0:
                    fabric.clip_gradients(self.model, optimizer, max_norm=grad_clip_val)
                optimizer.step()
                optimizer.zero_grad(set_to_none=True)
                if scheduler is not None:
                    scheduler.step()
                global_step += 1
                if global_step >= config.trainer.max_steps:
                    should_stop = True
                    break
            current_epoch += 1
