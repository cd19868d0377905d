#!/usr/bin/env python3
"""Record what the modules of Transformers and PEFT allocate in one forward and backward pass.

usage: record_allocations.py > tests/cases/plan/allocations.jsonl    (minutes; no GPU, no weights)

The real modules run on fake tensors: every storage is counted, in blocks of 512 bytes as a GPU's allocator cuts
them, from the operation that makes it to its release. Two things are replaced, because a CPU would take other
paths than a GPU: scaled dot-product attention keeps its inputs, output and one fp32 number a head and token, as
the flash kernels do, and dropout keeps a mask of one byte an element."""
import copy
import json
import sys
import warnings
import weakref

import peft.tuners.tuners_utils
import torch
import torch.nn.functional as functional
import transformers as hf
from peft import LoraConfig, get_peft_model
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_iter

BATCH, LENGTH = 8, 512


class Counter(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.live = self.peak = 0
        self.sizes = {}

    def add(self, tensor):
        if not isinstance(tensor, torch.Tensor):
            return
        storage = tensor.untyped_storage()
        key = storage._cdata
        if key in self.sizes:
            return
        self.sizes[key] = (storage.nbytes() + 511) // 512 * 512
        self.live += self.sizes[key]
        self.peak = max(self.peak, self.live)
        weakref.finalize(storage, self.release, key)

    def release(self, key):
        self.live -= self.sizes.pop(key, 0)

    def __torch_dispatch__(self, operation, types, args=(), kwargs=None):
        if "local_scalar_dense" in str(operation):
            return 1  # nothing has a value here: "no padding"
        result = operation(*args, **(kwargs or {}))
        for tensor in tree_iter(result):
            self.add(tensor)
        return result


class FlashAttention(torch.autograd.Function):
    @staticmethod
    def forward(ctx, query, key, value):
        output = torch.empty_like(query.transpose(1, 2)).transpose(1, 2)
        sums = torch.empty(query.shape[:3], dtype=torch.float32)
        ctx.save_for_backward(query, key, value, output, sums)
        return output

    @staticmethod
    def backward(ctx, gradient):
        query, key, value, _, _ = ctx.saved_tensors
        return torch.empty_like(query), torch.empty_like(key), torch.empty_like(value)


def replace_operators():
    def dropout(x, p=0.5, training=True, inplace=False):
        return torch.ops.aten.native_dropout(x, p, True)[0] if training and p > 0 else x

    functional.dropout = dropout
    functional.scaled_dot_product_attention = lambda query, key, value, **options: FlashAttention.apply(query, key, value)
    for name in ("kaiming_uniform_", "uniform_", "normal_", "xavier_uniform_", "trunc_normal_", "zeros_", "ones_", "constant_"):
        setattr(torch.nn.init, name, lambda tensor, *args, **kwargs: tensor)
    hf.modeling_utils.PreTrainedModel.init_weights = lambda model: model.tie_weights()
    tuner = peft.tuners.tuners_utils
    tuner.BaseTunerLayer._move_adapter_to_device_of_base_layer = lambda *args, **kwargs: None
    tuner.cast_adapter_dtype = lambda *args, **kwargs: None


def families():
    blocks = dict(num_hidden_layers=4, num_attention_heads=16)
    plain = dict(hidden_size=1024, intermediate_size=4096, vocab_size=8000, max_position_embeddings=2048, **blocks)
    small = dict(hidden_size=768, intermediate_size=3072, num_hidden_layers=4, num_attention_heads=12, vocab_size=8000)
    return {
        "llama": (hf.LlamaForCausalLM, hf.LlamaConfig(hidden_size=1024, intermediate_size=2816, num_key_value_heads=4, vocab_size=8000,
                                                      max_position_embeddings=4096, **blocks)),
        "qwen3": (hf.Qwen3ForCausalLM, hf.Qwen3Config(hidden_size=1024, intermediate_size=3072, num_key_value_heads=8, head_dim=128,
                                                      vocab_size=16000, max_position_embeddings=4096, **blocks)),
        "qwen2": (hf.Qwen2ForCausalLM, hf.Qwen2Config(hidden_size=896, intermediate_size=4864, num_hidden_layers=4, num_attention_heads=14,
                                                      num_key_value_heads=2, vocab_size=16000, max_position_embeddings=4096)),
        "gpt2": (hf.GPT2LMHeadModel, hf.GPT2Config(n_embd=768, n_layer=4, n_head=12, vocab_size=8000, n_positions=1024)),
        "gpt_neox": (hf.GPTNeoXForCausalLM, hf.GPTNeoXConfig(**plain)),
        "phi": (hf.PhiForCausalLM, hf.PhiConfig(hidden_act="gelu_new", **plain)),
        "gemma": (hf.GemmaForCausalLM, hf.GemmaConfig(hidden_size=1024, intermediate_size=4096, num_hidden_layers=4, num_attention_heads=8,
                                                      num_key_value_heads=1, head_dim=128, vocab_size=16000, max_position_embeddings=2048)),
        "bert": (hf.BertForSequenceClassification, hf.BertConfig(**small)),
        "distilbert": (hf.DistilBertForSequenceClassification, hf.DistilBertConfig(dim=768, hidden_dim=3072, n_layers=4, n_heads=12, vocab_size=8000)),
        "roberta": (hf.RobertaForTokenClassification, hf.RobertaConfig(max_position_embeddings=514, type_vocab_size=1, num_labels=9, **small)),
    }


def cases():
    bf16, fp32 = torch.bfloat16, torch.float32
    full = dict(method="full")
    return {
        "full bf16": (bf16, False, dict(full, weights="bf16", compute="bf16")),
        "full fp32": (fp32, False, dict(full, weights="fp32", compute="fp32")),
        "full amp": (fp32, True, dict(full, weights="fp32", compute="bf16")),
        "full bf16 ckpt": (bf16, False, dict(full, weights="bf16", compute="bf16", checkpointing="full")),
        "full fp32 eager": (fp32, False, dict(full, weights="fp32", compute="fp32", attention="eager")),
        "full amp eager": (fp32, True, dict(full, weights="fp32", compute="bf16", attention="eager")),
        "lora bf16 amp": (bf16, True, dict(method="lora", weights="bf16", compute="bf16")),
        "lora bf16 amp ckpt": (bf16, True, dict(method="lora", weights="bf16", compute="bf16", checkpointing="full")),
        "lora fp32": (fp32, False, dict(method="lora", weights="fp32", compute="fp32")),
    }


def build(model_class, config, weight_type, request):
    config = copy.deepcopy(config)
    config._attn_implementation = request.get("attention", "sdpa")
    torch.set_default_dtype(weight_type)
    model = model_class._from_config(config)
    torch.set_default_dtype(torch.float32)
    checkpoints = request.get("checkpointing") == "full"
    if request["method"] == "lora":
        if checkpoints:
            model.enable_input_require_grads()
        task = "SEQ_CLS" if "Sequence" in model_class.__name__ else "CAUSAL_LM"
        move, torch.nn.Module.to = torch.nn.Module.to, lambda module, *args, **kwargs: module
        model = get_peft_model(model, LoraConfig(r=16, lora_alpha=32, lora_dropout=0.05, target_modules="all-linear", task_type=task))
        torch.nn.Module.to = move
    if checkpoints:
        model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    model.config.use_cache = False
    return model.train()


def record(model_class, config, weight_type, autocast, request):
    with FakeTensorMode(allow_non_fake_inputs=True), Counter() as counter:
        model = build(model_class, config, weight_type, request)
        for tensor in list(model.parameters()) + list(model.buffers()):
            counter.add(tensor)
        weights = counter.live
        ids = torch.zeros(BATCH, LENGTH, dtype=torch.long)
        labels = torch.zeros(BATCH, dtype=torch.long) if "Sequence" in model_class.__name__ else ids.clone()
        counter.peak = counter.live
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=autocast):
            loss = model(input_ids=ids, labels=labels).loss
        loss.backward()
        return weights, counter.peak


def main():
    warnings.filterwarnings("ignore")
    hf.logging.set_verbosity_error()
    replace_operators()
    for family, (model_class, config) in families().items():
        for name, (weight_type, autocast, options) in cases().items():
            try:
                weights, peak = record(model_class, config, weight_type, autocast, options)
            except Exception as error:  # PEFT cannot wrap every family's head on fake tensors
                print(f"left out {family} {name}: {error}", file=sys.stderr)
                continue
            shape = {key: value for key, value in config.to_dict().items() if isinstance(value, (int, float, str, bool))}
            request = dict(options, effective_batch=BATCH, micro_batch=BATCH, seq_len=LENGTH, counter="allocated", gpu="A100",
                           optimizer="sgd", framework="transformers")
            if family == "roberta":
                request["task"] = "token-classification"
                shape["num_labels"] = 9
            print(json.dumps(dict(case=f"{family} {name}", config=shape, request=request, peak_bytes=peak, weight_bytes=weights)), flush=True)


if __name__ == "__main__":
    main()
