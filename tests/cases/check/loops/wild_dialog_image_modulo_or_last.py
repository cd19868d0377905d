# expect: mistake off_by_one_boundary
import torch
from accelerate import Accelerator

accelerator = Accelerator()
gradient_accumulation_steps = 8
num_train_epochs = 10


def run(model, image_encoder, train_loader, optimizer, scheduler, device):
    model, optimizer, train_loader = accelerator.prepare(model, optimizer, train_loader)
    for epoch in range(num_train_epochs):
        model.train()
        train_loss, train_count, accum_loss = 0, 0, 0
        for step, batch in enumerate(train_loader):
            img, input_ids, labels = tuple(t.to(device) for t in batch)
            img_embeddings = image_encoder(img)
            outputs = model(input_ids=input_ids, encoder_hidden_states=img_embeddings, labels=labels, return_dict=True)
            loss = outputs.loss
            loss = loss / gradient_accumulation_steps
            accelerator.backward(loss)
            train_loss += loss.item()
            accum_loss += loss.item()
            if step % gradient_accumulation_steps == 0 or step == len(train_loader) - 1:
                optimizer.step()
                scheduler.step()
                optimizer.zero_grad()
                accelerator.print("\rEpoch {} Iter {} / {}, Train Loss: {:.3f}".format(epoch, step, len(train_loader), accum_loss), end="")
                accum_loss = 0
            train_count += 1
