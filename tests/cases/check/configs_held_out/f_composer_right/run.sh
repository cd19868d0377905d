composer -n 8 train/train.py mpt.yaml train_loader.dataset.split=train
