# expect: ok
import torch


class XTrainer:
    def __init__(self, opt, pipeline, models, optimizers, schedulers):
        self.opt = opt
        self.pipeline = pipeline
        self.models = models
        self.optimizers = optimizers
        self.lr_schedulers = schedulers
        self.model_names = list(models.keys())
        self.grad_acc_steps = opt.get("GRADIENT_ACCUMULATE_STEP", 1)
        self.grad_acc_batches = []
        self.train_params = {"num_updates": 0, "optim_steps": {name: 0 for name in models}}
        self.grad_scaler = torch.cuda.amp.GradScaler()

    def is_gradient_accumulation_boundary(self):
        return len(self.grad_acc_batches) >= self.grad_acc_steps

    def backward_loss(self, loss, model_names):
        def backward(loss_tensor):
            if self.opt["FP16"]:
                self.grad_scaler.scale(loss_tensor).backward()
            else:
                loss_tensor.backward()

        if self.grad_acc_steps > 1:
            loss = loss / self.grad_acc_steps
        backward(loss)
        return loss

    def update_model(self, model_name="default"):
        if self.opt["FP16"]:
            self.grad_scaler.unscale_(self.optimizers[model_name])
            self.grad_scaler.step(self.optimizers[model_name])
            self.grad_scaler.update()
        else:
            self.optimizers[model_name].step()
        self.optimizers[model_name].zero_grad()
        self.train_params["optim_steps"][model_name] += 1
        self.lr_schedulers[model_name].step()

    def train_step(self, batch):
        self.grad_acc_batches.append(batch)
        if self.is_gradient_accumulation_boundary():
            for batch in self.grad_acc_batches:
                loss = self.pipeline.forward_step(self, batch)
                self.backward_loss(loss, self.model_names)
            self.update_model()
            self.grad_acc_batches = []
            self.train_params["num_updates"] += 1

    def train(self, loader):
        for epoch in range(self.opt["MAX_NUM_EPOCHS"]):
            for batch in loader:
                self.train_step(batch)
