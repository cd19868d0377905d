# expect: ok
import pytorch_lightning as pl
import torch


class GroupPolicy(pl.LightningModule):
    def __init__(self, policy, ref_model, lr, beta_kl, save_every):
        super().__init__()
        self.automatic_optimization = False
        self.policy, self.ref_model = policy, ref_model
        self.lr, self.beta_kl, self.save_every = lr, beta_kl, save_every

    def training_step(self, batch, batch_idx):
        opt = self.optimizers()
        opt.zero_grad()
        active = [(r, a) for r, a in zip(batch["records"], batch["advantages"]) if abs(a) >= 1e-8]
        gnorm = 0.0
        if active:
            self.policy.train()
            for rec, adv in active:
                lp_tok, valid = sequence_logprob(self.policy.model, rec, requires_grad=True)
                denom = valid.sum().clamp(min=1)
                loss = -(adv * (lp_tok * valid).sum() / denom)
                lp_ref, _ = sequence_logprob(self.ref_model, rec, requires_grad=False)
                delta = lp_ref - lp_tok
                loss = loss + self.beta_kl * ((torch.exp(delta) - delta - 1.0) * valid).sum() / denom
                self.manual_backward(loss / len(active))
            gnorm = float(torch.nn.utils.clip_grad_norm_(self.policy.model.parameters(), 1.0))
            opt.step()
            self.policy.eval()
        print(f"[iter {batch_idx}] active={len(active)} gnorm={gnorm:.3f}")
        if (batch_idx + 1) % self.save_every == 0:
            self.policy.save_pretrained(f"iter{batch_idx + 1:03d}")

    def configure_optimizers(self):
        return torch.optim.AdamW(self.policy.model.parameters(), lr=self.lr)
