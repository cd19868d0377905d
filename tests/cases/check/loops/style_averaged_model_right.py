# expect: ok
from torch.optim.swa_utils import AveragedModel
swa = AveragedModel(model)
for epoch in range(100):
    for x, y in loader:
        opt.zero_grad()
        F.cross_entropy(model(x), y).backward()
        opt.step()
    if epoch > 75:
        swa.update_parameters(model)
