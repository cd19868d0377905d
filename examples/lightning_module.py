"""A Lightning module, trained with accumulate_grad_batches.

    batchwright tune --effective-batch 64 -- python examples/lightning_module.py --batch_size {micro} --accum {accum} \
        --default_root_dir {scratch}
"""
import argparse

import lightning
import torch
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser()
parser.add_argument("--batch_size", type=int, default=8)
parser.add_argument("--accum", type=int, default=8)
parser.add_argument("--epochs", type=int, default=10)
parser.add_argument("--default_root_dir", required=True)
args = parser.parse_args()


class Classifier(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.network = torch.nn.Sequential(torch.nn.Linear(128, 256), torch.nn.ReLU(), torch.nn.Linear(256, 2))

    def forward(self, inputs):
        return self.network(inputs)

    def training_step(self, batch, batch_index):
        inputs, labels = batch
        return torch.nn.functional.cross_entropy(self(inputs), labels)

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=1e-3)


lightning.seed_everything(0)
features = torch.randn(640, 128)
loader = DataLoader(TensorDataset(features, (features.sum(1) > 0).long()), batch_size=args.batch_size, shuffle=True)
trainer = lightning.Trainer(accelerator="cpu", max_epochs=args.epochs, accumulate_grad_batches=args.accum,
                            gradient_clip_val=1.0, default_root_dir=args.default_root_dir, logger=False,
                            enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False)
trainer.fit(Classifier(), loader)
