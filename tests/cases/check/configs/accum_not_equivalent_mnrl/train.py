from sentence_transformers import SentenceTransformerTrainingArguments
args = SentenceTransformerTrainingArguments(
    output_dir="models/bi-encoder",
    per_device_train_batch_size=1,
    gradient_accumulation_steps=64,
    num_train_epochs=1,
)
loss = MultipleNegativesRankingLoss(model)
