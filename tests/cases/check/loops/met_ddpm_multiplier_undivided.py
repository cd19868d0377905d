# expect: mistake no_division tail_leak
import torch
from tqdm import tqdm


def train_step(model, diffusion, data_loader, optimiser, step, writer=None, batch_multiplier=1):
    model.train()
    epoch_losses = []
    with tqdm(total=len(data_loader), dynamic_ncols=True) as tq:
        tq.set_description(f"Train :: Epoch: {step}")
        for i, image in enumerate(data_loader):
            tq.update(1)
            image = image.to(diffusion.device)
            time = torch.randint(0, diffusion.steps, (image.shape[0],), device=diffusion.device)
            loss = diffusion.training_loss(model, image, time)
            loss.backward()
            if (i + 1) % batch_multiplier == 0:
                optimiser.step()
                optimiser.zero_grad()
                if writer is not None:
                    writer.add_scalar("Loss/train", loss.item(), step * len(data_loader) + i)
            epoch_losses.append(loss.item())
            tq.set_postfix_str(s=f"Loss: {loss.item():.4f}")
        mean_loss = sum(epoch_losses) / len(epoch_losses)
    return mean_loss
