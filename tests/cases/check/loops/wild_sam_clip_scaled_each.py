# expect: mistake clip_per_micro_step clip_before_unscale
import numpy as np
import torch


def finetune(predictor, train_data, optimizer, scheduler, scaler, steps, accumulation_steps, steps_per_epoch):
    mean_iou = 0.0
    loss_list, iou_list = [], []
    for global_step in range(1, steps + 1):
        with torch.cuda.amp.autocast():
            image, masks, points, num_instances = read_batch(train_data)
            if masks is None or num_instances == 0:
                continue
            predictor.set_image(image)
            seg_loss, iou = 0.0, 0.0
            for i in range(num_instances):
                predicted, scores = predictor.predict_mask(points[i])
                gt = torch.tensor(masks[i].astype(np.float32)).cuda()
                seg_loss = seg_loss + (-gt * torch.log(predicted + 1e-5) - (1 - gt) * torch.log(1 - predicted + 1e-5)).mean()
                iou = iou + ((gt * (predicted > 0.5)).sum() / (gt.sum() + 1e-6))
            seg_loss = seg_loss / max(1, num_instances)
            iou = iou / max(1, num_instances)
            score_loss = torch.abs(scores[:, 0] - iou).mean()
            loss = seg_loss + 0.05 * score_loss
        loss = loss / accumulation_steps
        scaler.scale(loss).backward()
        torch.nn.utils.clip_grad_norm_(predictor.model.parameters(), 1.0)
        if global_step % accumulation_steps == 0:
            scaler.step(optimizer)
            scaler.update()
            predictor.model.zero_grad()
            scheduler.step()
        mean_iou = mean_iou * 0.99 + 0.01 * iou.item()
        if global_step % steps_per_epoch == 0:
            loss_list.append(loss.item() * accumulation_steps)
            iou_list.append(mean_iou)
            print(global_step, loss_list[-1], mean_iou)
