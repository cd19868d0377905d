# expect: mistake no_division
import torch
from tqdm import tqdm

accumulation_steps = 8


def train_model(model, train_loader, criterion, optimizer, num_epochs, device):
    for epoch in range(num_epochs):
        model.train()
        running_loss, running_attribution_loss, total, correct = 0.0, 0.0, 0, 0
        optimizer.zero_grad()
        with tqdm(train_loader, unit="batch") as pbar:
            for i, (inputs, native_labels, anno_labels) in enumerate(pbar):
                inputs, native_labels = inputs.to(device), native_labels.to(device)
                outputs = model(inputs)
                loss = criterion(outputs, native_labels)
                attributions = attribution_score(inputs, model, native_labels)
                attributions_avg = attributions.mean(dim=2)
                attribution_loss = weighted_mse_loss(attributions_avg, anno_labels, weight_for_zero=1.0, weight_for_one=100.0)
                total_loss = loss + attribution_loss
                total_loss.backward()
                if (i + 1) % accumulation_steps == 0:
                    optimizer.step()
                    optimizer.zero_grad()
                running_loss += loss.item()
                running_attribution_loss += attribution_loss.item()
                _, predicted = torch.max(outputs, 1)
                total += native_labels.size(0)
                correct += (predicted == native_labels).sum().item()
                pbar.set_postfix(loss=running_loss / (i + 1), attribution_loss=running_attribution_loss / (i + 1), accuracy=100 * correct / total)
