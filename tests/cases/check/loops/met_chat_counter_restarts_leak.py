# expect: mistake tail_leak
import time

import torch
from tqdm import tqdm


class ChatTrainer:
    def __init__(self, args, train_loader, model, optimizer, scheduler, device):
        self.args, self.train_loader = args, train_loader
        self.model, self.optimizer, self.scheduler = model, optimizer, scheduler
        self.device = device

    def train(self):
        self.model.train()
        for epoch in range(1, self.args.epoch + 1):
            total_loss = .0
            gradient_accumulation_counter = 0
            start_time = time.time()
            for batch_id, (input_ids, labels_ids) in tqdm(enumerate(self.train_loader)):
                input_ids, labels_ids = input_ids.to(self.device), labels_ids.to(self.device)
                logits = self.model(input_ids=input_ids)
                loss = self.calculate_loss(logits=logits, labels_ids=labels_ids)
                total_loss += loss.cpu().item()
                assert self.args.accumulated_steps > 1
                loss /= self.args.accumulated_steps
                loss.backward()
                gradient_accumulation_counter += 1
                if gradient_accumulation_counter % self.args.accumulated_steps == 0:
                    torch.nn.utils.clip_grad_norm_(parameters=self.model.parameters(), max_norm=self.args.grad_norm)
                    self.optimizer.step()
                    self.scheduler.step()
                    self.optimizer.zero_grad()
                    gradient_accumulation_counter = 0
            print(epoch, total_loss / len(self.train_loader), time.time() - start_time)
            self.valid(epoch)
