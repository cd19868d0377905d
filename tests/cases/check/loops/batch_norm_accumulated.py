# expect: mistake not_equivalent_by_nature
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(nn.Conv2d(3, 32, 3), nn.BatchNorm2d(32), nn.ReLU())
        self.head = nn.Linear(32, 10)

    def forward(self, x):
        return self.head(self.features(x).mean((2, 3)))

net = Net()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
accumulate = 8
for i, (x, y) in enumerate(loader):
    loss = F.cross_entropy(net(x), y) / accumulate
    loss.backward()
    if (i + 1) % accumulate == 0:
        optimizer.step()
        optimizer.zero_grad()
