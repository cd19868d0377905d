# expect: ok
def distill(student, teacher, loader, opt, T=2.0, alpha=0.5, accum=4):
    student.train(); teacher.eval()
    opt.zero_grad()
    for i, (x, y) in enumerate(loader):
        with torch.no_grad():
            t = teacher(x)
        s = student(x)
        kd = F.kl_div(F.log_softmax(s / T, 1), F.softmax(t / T, 1), reduction="batchmean") * T * T
        ce = F.cross_entropy(s, y)
        loss = (alpha * kd + (1 - alpha) * ce) / accum
        loss.backward()
        if (i + 1) % accum == 0:
            opt.step()
            opt.zero_grad()
