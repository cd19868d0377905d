# expect: ok
import functools
import torch
import torch.nn.functional as F


class TrainerDiffusion:
    def __init__(self, configs, model, base_diffusion, autoencoder):
        self.configs = configs
        self.model = model
        self.base_diffusion = base_diffusion
        self.autoencoder = autoencoder
        self.num_gpus = torch.cuda.device_count()
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=configs.train.lr)
        self.amp_scaler = torch.amp.GradScaler('cuda') if configs.train.use_amp else None

    def backward_step(self, dif_loss_wrapper, micro_data, num_grad_accumulate, tt):
        context = torch.cuda.amp.autocast if self.configs.train.use_amp else torch.no_grad
        with torch.cuda.amp.autocast(enabled=self.configs.train.use_amp):
            losses, z_t, z0_pred = dif_loss_wrapper()
            losses['loss'] = losses['mse']
            loss = losses['loss'].mean() / num_grad_accumulate
        if self.amp_scaler is None:
            loss.backward()
        else:
            self.amp_scaler.scale(loss).backward()
        return losses, z0_pred, z_t

    def training_step(self, data):
        current_batchsize = data['gt'].shape[0]
        micro_batchsize = self.configs.train.microbatch
        num_grad_accumulate = current_batchsize // micro_batchsize
        for jj in range(0, current_batchsize, micro_batchsize):
            micro_data = {key: value[jj:jj + micro_batchsize, ] for key, value in data.items()}
            last_batch = (jj + micro_batchsize >= current_batchsize)
            tt = torch.randint(0, self.base_diffusion.num_timesteps, size=(micro_data['gt'].shape[0],))
            compute_losses = functools.partial(
                self.base_diffusion.training_losses, self.model, micro_data['gt'], micro_data['lq'], tt,
                first_stage_model=self.autoencoder)
            if last_batch or self.num_gpus <= 1:
                losses, z0_pred, z_t = self.backward_step(compute_losses, micro_data, num_grad_accumulate, tt)
            else:
                with self.model.no_sync():
                    losses, z0_pred, z_t = self.backward_step(compute_losses, micro_data, num_grad_accumulate, tt)
        if self.configs.train.use_amp:
            self.amp_scaler.step(self.optimizer)
            self.amp_scaler.update()
        else:
            self.optimizer.step()
        self.model.zero_grad()

    def train(self, loader):
        for ii in range(self.configs.train.iterations):
            data = next(loader)
            self.training_step(data)
