# expect: mistake checkpoint_rng
from torch.utils.checkpoint import checkpoint

class Recompute(torch.autograd.Function):
    @staticmethod
    def forward(ctx, function, x):
        ctx.function = function
        ctx.save_for_backward(x)
        with torch.no_grad():
            return function(x)

    @staticmethod
    def backward(ctx, gradient):
        (x,) = ctx.saved_tensors
        x = x.detach().requires_grad_()
        with torch.enable_grad():
            y = ctx.function(x)
        torch.autograd.backward(y, gradient)
        return None, x.grad

class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(width, width), nn.GELU(), nn.Dropout(0.1))

class Net(nn.Module):
    def forward(self, x):
        for block in self.blocks:
            x = Recompute.apply(block, x)
        return x

def train(net, loader, optimizer, accum_steps):
    for i, (x, y) in enumerate(loader):
        (F.mse_loss(net(x), y) / accum_steps).backward()
        if (i + 1) % accum_steps == 0:
            optimizer.step()
            optimizer.zero_grad()
