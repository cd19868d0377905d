# expect: ok
import torch
import torch.utils.tensorboard as tb


def train(exp_dir="logs", model_name="linear_planner", num_epochs=50, lr=1e-3, batch_size=32, gradient_accumulation_steps=2):
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    logger = tb.SummaryWriter(exp_dir)
    model = load_model(model_name).to(device)
    train_loader = load_data("train", batch_size=batch_size, shuffle=True)
    criterion = torch.nn.SmoothL1Loss()
    optimizer = torch.optim.AdamW(model.parameters(), lr=lr)
    scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=3)
    for epoch in range(num_epochs):
        model.train()
        total_loss = 0.0
        seen = 0
        optimizer.zero_grad()
        for batch_idx, batch in enumerate(train_loader):
            left = batch["track_left"].to(device)
            right = batch["track_right"].to(device)
            waypoints = batch["waypoints"].to(device)
            mask = batch["waypoints_mask"].to(device)
            outputs = model(left, right)
            loss = criterion(outputs * mask[..., None], waypoints * mask[..., None])
            loss = loss / gradient_accumulation_steps
            loss.backward()
            if (batch_idx + 1) % gradient_accumulation_steps == 0 or (batch_idx + 1) == len(train_loader):
                optimizer.step()
                optimizer.zero_grad()
            total_loss += loss.item() * gradient_accumulation_steps
            if mask.sum().item() > 0:
                seen += 1
        avg = total_loss / seen if seen > 0 else 0
        print(f"Training - Epoch [{epoch + 1}/{num_epochs}], Loss: {avg:.4f}")
        val = validate(model, criterion)
        scheduler.step(val)
        logger.add_scalar("train_loss", avg, epoch)
