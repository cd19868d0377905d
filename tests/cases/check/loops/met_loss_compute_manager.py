# expect: mistake no_division
class LossCompute:
    eps = 1e-8

    def __init__(self, criterion, grad_accum, model, opt=None):
        self.criterion, self.opt, self.grad_accum = criterion, opt, grad_accum
        self.acc_loss = 0
        self.norm_term = 0
        self.loss = 0
        self.batch_count = 0

    def __enter__(self):
        self.batch_count = 0

    def __exit__(self, type, value, traceback):
        if self.batch_count > 0:
            self.step()

    @property
    def avg_loss(self):
        return (self.acc_loss + self.eps) / (self.norm_term + self.eps)

    def step(self):
        self.opt.step()
        self.opt.optimizer.zero_grad()

    def backward_and_step(self):
        self.loss.backward()
        self.batch_count += 1
        if self.batch_count == self.grad_accum:
            self.step()
            self.batch_count = 0

    def __call__(self, y_pred, y, norm):
        y_pred = y_pred.contiguous().view(-1, y_pred.shape[-1])
        self.loss = self.criterion(y_pred, y.contiguous().view(-1))
        if self.opt is not None:
            self.backward_and_step()
        self.acc_loss += self.loss.item() * norm
        self.norm_term += norm
        return self.loss.item()


def run_epoch(data_iter, model, loss_compute):
    with loss_compute:
        for batch in data_iter:
            out = model(batch.src, batch.tgt)
            loss_compute(out, batch.tgt_y, batch.ntokens)
    return loss_compute.avg_loss
