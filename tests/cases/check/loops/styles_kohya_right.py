# expect: ok
import torch
from accelerate import Accelerator


class NetworkTrainer:
    def train(self, args):
        accelerator = Accelerator(gradient_accumulation_steps=args.gradient_accumulation_steps, log_with=args.log_with)
        network, optimizer, train_dataloader, lr_scheduler = accelerator.prepare(
            self.network, self.optimizer, self.dataloader, self.lr_scheduler)
        progress = 0
        loss_recorder = LossRecorder()
        for epoch in range(args.max_train_epochs):
            for step, batch in enumerate(train_dataloader):
                with accelerator.accumulate(network):
                    with torch.set_grad_enabled(True), accelerator.autocast():
                        noise_pred = self.call_unet(args, accelerator, batch)
                    loss = torch.nn.functional.mse_loss(noise_pred.float(), batch["target"].float(), reduction="none")
                    loss = loss.mean([1, 2, 3])
                    loss = loss * batch["loss_weights"]
                    loss = loss.mean()
                    accelerator.backward(loss)
                    if accelerator.sync_gradients and args.max_grad_norm != 0.0:
                        accelerator.clip_grad_norm_(network.get_trainable_params(), args.max_grad_norm)
                    optimizer.step()
                    lr_scheduler.step()
                    optimizer.zero_grad(set_to_none=True)
                if accelerator.sync_gradients:
                    progress += 1
                    if args.save_every_n_steps is not None and progress % args.save_every_n_steps == 0:
                        self.save_model(progress)
                current_loss = loss.detach().item()
                loss_recorder.add(epoch=epoch, step=step, loss=current_loss)
                if progress >= args.max_train_steps:
                    break
