# expect: mistake no_division
class ORPOTrainer(SLTrainer):
    def __init__(self, actor, booster, actor_optim, actor_lr_scheduler, tokenizer, max_epochs=1, accumulation_steps=1, lam=0.1):
        super().__init__(booster, max_epochs=max_epochs, model=actor, optimizer=actor_optim)
        self.actor_scheduler = actor_lr_scheduler
        self.tokenizer = tokenizer
        self.odds_ratio_loss_fn = OddsRatioLoss()
        self.lam = lam
        self.accumulation_steps = accumulation_steps
        self.num_train_step = 0
        self.accumulative_meter = AccumulativeMeanMeter()

    def _train(self, epoch):
        self.model.train()
        self.accumulative_meter.reset()
        step_bar = trange(len(self.train_dataloader) // self.accumulation_steps, desc=f"Epoch {epoch + 1}/{self.max_epochs}")
        for i, batch in enumerate(self.train_dataloader):
            batch = to_device(batch, self.device)
            actor_out = self.model(input_ids=batch["input_ids"], labels=batch["labels"], attention_mask=batch["attention_mask"])
            logprob_chosen = calc_masked_log_probs(actor_out["logits"], batch["chosen"], batch["chosen_mask"])
            logprob_reject = calc_masked_log_probs(actor_out["logits"], batch["reject"], batch["reject_mask"])
            chosen_nll = actor_out["loss"]
            odds_ratio_loss, log_odds_ratio = self.odds_ratio_loss_fn(logprob_chosen, logprob_reject)
            loss = chosen_nll - odds_ratio_loss * self.lam
            step_bar.set_description(f"Epoch {epoch + 1}/{self.max_epochs} Loss: {loss.detach().cpu().item():.4f}")
            self.booster.backward(loss=loss, optimizer=self.optimizer)
            if self.num_train_step % self.accumulation_steps == self.accumulation_steps - 1:
                self.optimizer.step()
                self.optimizer.zero_grad()
                self.actor_scheduler.step()
            loss_mean = all_reduce_mean(tensor=loss)
            self.accumulative_meter.add("loss", loss_mean.to(torch.float16).item())
            self.num_train_step += 1
