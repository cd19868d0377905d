"""TRL's SFTTrainer on a tiny Llama with random weights and a tokenizer of whole words.

    batchwright tune   --effective-batch 32 -- python examples/trl_sft.py --per_device_train_batch_size {micro} \
        --gradient_accumulation_steps {accum} --output_dir {scratch}
    batchwright verify --effective-batch 32 -- ...
"""
import argparse

import transformers
from datasets import Dataset
from tokenizers import Tokenizer, models, pre_tokenizers
from trl import SFTConfig, SFTTrainer

parser = argparse.ArgumentParser()
parser.add_argument("--per_device_train_batch_size", type=int, default=8)
parser.add_argument("--gradient_accumulation_steps", type=int, default=4)
parser.add_argument("--output_dir", required=True)
parser.add_argument("--max_steps", type=int, default=100)
args = parser.parse_args()

transformers.set_seed(0)
words = "a fine film with a slow start and an end that nobody in the room had seen coming at all".split()
texts = [" ".join(words[row % 7: 8 + row % 11]) for row in range(640)]
vocabulary = {word: number for number, word in enumerate(["<pad>", "<eos>", "<unk>", *sorted(set(words))])}
splitter = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
splitter.pre_tokenizer = pre_tokenizers.Whitespace()
tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_object=splitter, pad_token="<pad>", eos_token="<eos>",
                                                 unk_token="<unk>")
model = transformers.LlamaForCausalLM(transformers.LlamaConfig(
    vocab_size=len(vocabulary), hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=4,
    num_key_value_heads=2, max_position_embeddings=64, pad_token_id=0, eos_token_id=1, bos_token_id=1))
trainer = SFTTrainer(
    model=model, processing_class=tokenizer, train_dataset=Dataset.from_dict({"text": texts}),
    args=SFTConfig(
        output_dir=args.output_dir, per_device_train_batch_size=args.per_device_train_batch_size,
        gradient_accumulation_steps=args.gradient_accumulation_steps, max_steps=args.max_steps, learning_rate=1e-3,
        max_length=32, save_strategy="no", report_to=[], use_cpu=True, bf16=False))
trainer.train()
