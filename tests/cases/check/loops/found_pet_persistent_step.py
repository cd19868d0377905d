# expect: ok
import torch
from tqdm import tqdm, trange


def train(self, task_train_data, device, per_gpu_train_batch_size=8, num_train_epochs=3, gradient_accumulation_steps=1,
          weight_decay=0.0, learning_rate=5e-5, adam_epsilon=1e-8, warmup_steps=0, max_grad_norm=1, logging_steps=50, max_steps=-1):
    train_dataset = self._generate_dataset(task_train_data)
    train_dataloader = torch.utils.data.DataLoader(train_dataset, sampler=torch.utils.data.RandomSampler(train_dataset), batch_size=per_gpu_train_batch_size)
    if max_steps > 0:
        t_total = max_steps
        num_train_epochs = max_steps // (max(1, len(train_dataloader) // gradient_accumulation_steps)) + 1
    else:
        t_total = len(train_dataloader) // gradient_accumulation_steps * num_train_epochs
    optimizer = torch.optim.AdamW(self.model.parameters(), lr=learning_rate, eps=adam_epsilon)
    scheduler = get_linear_schedule_with_warmup(optimizer, num_warmup_steps=warmup_steps, num_training_steps=t_total)
    step = 0
    global_step = 0
    tr_loss, logging_loss = 0.0, 0.0
    self.model.zero_grad()
    train_iterator = trange(int(num_train_epochs), desc="Epoch")
    for _ in train_iterator:
        epoch_iterator = tqdm(train_dataloader, desc="Iteration")
        for _, batch in enumerate(epoch_iterator):
            self.model.train()
            batch = {k: t.to(device) for k, t in batch.items()}
            loss = self.mlm_train_step(batch)
            if gradient_accumulation_steps > 1:
                loss = loss / gradient_accumulation_steps
            loss.backward()
            tr_loss += loss.item()
            if (step + 1) % gradient_accumulation_steps == 0:
                torch.nn.utils.clip_grad_norm_(self.model.parameters(), max_grad_norm)
                optimizer.step()
                scheduler.step()
                self.model.zero_grad()
                global_step += 1
                if logging_steps > 0 and global_step % logging_steps == 0:
                    loss_scalar = (tr_loss - logging_loss) / logging_steps
                    print({"learning_rate": scheduler.get_last_lr()[0], "loss": loss_scalar, "step": global_step})
                    logging_loss = tr_loss
            if 0 < max_steps < global_step:
                epoch_iterator.close()
                break
            step += 1
        if 0 < max_steps < global_step:
            train_iterator.close()
            break
    return global_step, (tr_loss / global_step if global_step > 0 else -1)
