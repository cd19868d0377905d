# expect: ok
import logging

from accelerate import Accelerator
from tqdm.auto import tqdm

logger = logging.getLogger(__name__)


def train(training, model, loader, optimizer, scheduler, validate):
    accelerator = Accelerator(gradient_accumulation_steps=training.gradient_accumulation_steps)
    model, optimizer, loader, scheduler = accelerator.prepare(model, optimizer, loader, scheduler)
    global_step, running_loss, running_count = 0, 0.0, 0
    for epoch in range(training.epochs):
        model.train()
        progress = tqdm(loader, disable=not accelerator.is_local_main_process)
        for batch in progress:
            with accelerator.accumulate(model):
                loss = model(**batch).loss
                accelerator.backward(loss)
                if accelerator.sync_gradients:
                    accelerator.clip_grad_norm_(model.parameters(), training.max_grad_norm)
                optimizer.step()
                if accelerator.sync_gradients:
                    scheduler.step()
                optimizer.zero_grad()
            gathered = accelerator.gather(loss.detach().float()).mean().item()
            running_loss += gathered
            running_count += 1
            progress.set_postfix({"loss": f"{gathered:.4f}", "step": global_step}, refresh=False)
            if not accelerator.sync_gradients:
                continue
            global_step += 1
            if global_step % training.logging_steps == 0:
                logger.info("epoch=%d step=%d train_loss=%.6f", epoch + 1, global_step, running_loss / max(1, running_count))
                running_loss, running_count = 0.0, 0
            if global_step % training.eval_steps == 0:
                validate(model)
