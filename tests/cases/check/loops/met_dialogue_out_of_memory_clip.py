# expect: mistake clip_per_micro_step log_factor tail_leak
import torch
from torch.utils.tensorboard import SummaryWriter

import config


def train(model, data_loader, multi_gpu, optimizer, scheduler, epoch, batch_num, logger):
    model.train()
    running_loss = 0
    oom_time = 0
    summary_writer = SummaryWriter(log_dir=config.LOG_PATH)
    for batch_idx, input_ids in enumerate(data_loader):
        input_ids = input_ids.to(config.DEVICE)
        try:
            outputs = model(input_ids=input_ids, labels=input_ids)
            loss = outputs[0]
            if multi_gpu:
                loss = loss.mean()
            if config.GRADIENT_ACCUMULATION > 1:
                loss = loss / config.GRADIENT_ACCUMULATION
            running_loss += loss.item()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), config.MAX_GRAD_NORM)
            if (batch_idx + 1) % config.GRADIENT_ACCUMULATION == 0:
                optimizer.step()
                optimizer.zero_grad()
                scheduler.step()
                if (batch_idx + 1) % config.LOG_STEP == 0:
                    logger.info("batch: {}/{} of epoch: {}, loss: {}".format(batch_idx + 1, batch_num, epoch + 1, running_loss))
                    summary_writer.add_scalar("loss", loss.item(), epoch * batch_num + batch_idx)
                running_loss = 0
        except RuntimeError as exception:
            if "out of memory" in str(exception):
                oom_time += 1
                logger.info("WARNING: out of gpu memory,times: {}".format(oom_time))
                torch.cuda.empty_cache()
            else:
                raise exception
