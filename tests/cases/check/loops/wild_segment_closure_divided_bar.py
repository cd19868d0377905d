# expect: mistake log_factor
import torch
from tqdm import tqdm


def finetune(args, sam_model, train_dataset, train_dataloader, loss_fn, wandb):
    virtual_batch_size = args.virtual_batch_size
    optimizer = torch.optim.Adam(sam_model.mask_decoder.parameters(), lr=0)
    lr_scheduler = torch.optim.lr_scheduler.MultiStepLR(optimizer, milestones=[600, 1200, 1800], gamma=0.6)
    iteration_count = 0
    iter_bar = tqdm(range(args.epoch_num * len(train_dataset)))

    def forward_loop(sample, mode="train"):
        nonlocal iteration_count
        image, mask = sample["image"].cuda(), sample["mask"].cuda()
        if mode == "train":
            iteration_count += 1
            update_learning_rate(optimizer, iteration_count)
        logits = sam_model(image)
        loss = loss_fn(logits, mask)
        if mode == "train":
            if virtual_batch_size is not None:
                loss /= virtual_batch_size
                loss.backward()
                if iteration_count % virtual_batch_size == 0:
                    optimizer.step()
                    optimizer.zero_grad()
                    lr_scheduler.step()
                    wandb.log({"training_loss": loss.item() * virtual_batch_size}, step=iteration_count // virtual_batch_size)
            else:
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                lr_scheduler.step()
                wandb.log({"training_loss": loss.item()}, step=iteration_count)
            iter_bar.update(image.shape[0])
            iter_bar.set_description("[iter:{}, loss:{:.4f}]".format(iteration_count, loss.item()))
        return loss.item()

    for e in range(1, args.epoch_num + 1):
        epoch_losses = []
        for i, train_sample in enumerate(train_dataloader):
            epoch_losses.append(forward_loop(train_sample, mode="train"))
        tqdm.write(f"Train: mean loss {sum(epoch_losses) / len(epoch_losses)}")
