"""Scripts that say themselves where their steps end: marked_steps.py CASE MICRO ACCUM FOLDER"""
import sys
import time

import batchwright

case, micro, accum, folder = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]


def without_torch():
    for _ in range(20):
        time.sleep(0.001 * accum)
        batchwright.step(examples=micro * accum, micro_steps=accum)


def own_optimizer():
    """torch, but an update that no torch optimizer makes."""
    import torch

    model = torch.nn.Linear(8, 2)
    for _ in range(20):
        for _ in range(accum):
            model(torch.randn(micro, 8)).sum().backward()
        with torch.no_grad():
            for parameter in model.parameters():
                parameter -= 0.01 * parameter.grad
                parameter.grad = None
        batchwright.step()


def optimizers_in_turn():
    """As an adversarial pair is trained: both of them step once in what the script calls a step."""
    import torch

    pair = [torch.nn.Linear(8, 2), torch.nn.Linear(8, 2)]
    optimizers = [torch.optim.SGD(model.parameters(), lr=0.01) for model in pair]
    for _ in range(20):
        for model, optimizer in zip(pair, optimizers):
            for _ in range(accum):
                model(torch.randn(micro, 8)).sum().backward()
            optimizer.step()
            optimizer.zero_grad()
        batchwright.step(examples=micro * accum, micro_steps=accum)


def transformers_callback():
    import transformers
    from batchwright.transformers import BatchwrightCallback

    model = transformers.BertForSequenceClassification(transformers.BertConfig(
        vocab_size=50, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16))
    rows = [{"input_ids": [1, 2, row % 50], "labels": row % 2} for row in range(640)]
    arguments = transformers.TrainingArguments(
        output_dir=folder, per_device_train_batch_size=micro, gradient_accumulation_steps=accum, max_steps=20, report_to=[],
        save_strategy="no", use_cpu=True, disable_tqdm=True)
    transformers.Trainer(model=model, args=arguments, train_dataset=rows, callbacks=[BatchwrightCallback()]).train()


def lightning_callback():
    import lightning
    import torch
    from batchwright.lightning import BatchwrightCallback

    class ByHand(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.automatic_optimization = False
            self.network = torch.nn.Linear(8, 2)

        def training_step(self, batch, index):
            self.manual_backward(self.network(batch[0]).sum())
            if (index + 1) % accum == 0:
                self.optimizers().step()
                self.optimizers().zero_grad()

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), lr=0.01)

    data = torch.utils.data.TensorDataset(torch.randn(640, 8))
    lightning.Trainer(accelerator="cpu", max_epochs=3, default_root_dir=folder, logger=False, enable_checkpointing=False,
                      enable_progress_bar=False, enable_model_summary=False, callbacks=[BatchwrightCallback()]).fit(
                          ByHand(), torch.utils.data.DataLoader(data, batch_size=micro))


{"without_torch": without_torch, "own_optimizer": own_optimizer, "optimizers_in_turn": optimizers_in_turn,
 "transformers_callback": transformers_callback, "lightning_callback": lightning_callback}[case]()
