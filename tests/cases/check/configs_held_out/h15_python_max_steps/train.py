from trl import SFTConfig
NUM_EXAMPLES = 50000
args = SFTConfig(
    output_dir="out",
    per_device_train_batch_size=4,
    gradient_accumulation_steps=4,
    num_train_epochs=2,
    max_steps=100000,
    learning_rate=2e-4,
)
