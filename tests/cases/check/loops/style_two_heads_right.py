# expect: ok
def train_multi(model, dl, opt, sched, grad_acc=8):
    opt.zero_grad()
    for i, batch in enumerate(dl):
        cls_loss = F.cross_entropy(model.cls(batch), batch["y"])
        reg_loss = F.l1_loss(model.reg(batch), batch["z"])
        loss = (cls_loss + 0.5 * reg_loss) * (1.0 / grad_acc)
        loss.backward()
        if (i + 1) % grad_acc == 0:
            clip_grad_norm_(model.parameters(), 1.0)
            opt.step()
            sched.step()
            opt.zero_grad()
