# expect: ok
class MyTrainer:
    def __init__(self, model, args):
        self.model = model
        self.args = args
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr)
        self.scaler = torch.amp.GradScaler("cuda", enabled=args.fp16)
        self.micro = 0

    @property
    def at_boundary(self):
        return self.micro % self.args.grad_accum == 0

    def train_step(self, batch):
        self.micro += 1
        with torch.autocast("cuda", enabled=self.args.fp16):
            loss = self.model(**batch).loss
        self.scaler.scale(loss / self.args.grad_accum).backward()
        if self.at_boundary:
            self.scaler.unscale_(self.optimizer)
            norm = torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.args.clip)
            self.scaler.step(self.optimizer)
            self.scaler.update()
            self.optimizer.zero_grad(set_to_none=True)
        return loss.item()

    def fit(self, loader):
        for epoch in range(self.args.epochs):
            for batch in loader:
                value = self.train_step(batch)
