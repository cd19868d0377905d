# expect: ok
class Updater:
    def __init__(self, model, iterator, optimizer, accum_grad):
        self.model, self.iterator, self.optimizer = model, iterator, optimizer
        self.accum_grad = accum_grad
        self.forward_count = 0

    def update_core(self):
        batch = self.iterator.next()
        is_new_epoch = self.iterator.is_new_epoch
        loss = self.model(batch).mean() / self.accum_grad
        loss.backward()
        self.forward_count += 1
        if not is_new_epoch and self.forward_count != self.accum_grad:
            return
        self.forward_count = 0
        self.optimizer.step()
        self.optimizer.zero_grad()
