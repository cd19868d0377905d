"""Reads a token file (src/data/token_file.h) and pads rows: written apart from the C++ reader, so that each checks the other."""
import json
import struct

import numpy

NO_LABEL = -100


class TokenFile:
    def __init__(self, path):
        with open(path, "rb") as file:
            content = file.read()
        assert content[:8] == b"BWTOKENS", f"{path} is not a token file"
        version, length = struct.unpack_from("<II", content, 8)
        assert version == 2, f"{path} has format version {version}"
        self.header = json.loads(content[16:16 + length])
        self.task = self.header["task"]
        rows, tokens = self.header["rows"], self.header["tokens"]

        def array(name, dtype, count):
            return numpy.frombuffer(content, dtype, count, self.header["arrays"][name])

        self.offsets = array("offsets", "<u8", rows + 1)
        self.all_ids = array("ids", "<i4", tokens)
        self.all_type_ids = array("type_ids", "u1", tokens)
        if self.task == "sequence-classification":
            self.labels = array("labels", "<i4", rows)
        elif self.task == "question-answering":
            self.spans = array("spans", "<i4", 2 * rows).reshape(rows, 2)
        else:
            self.token_labels = array("token_labels", "<i4", tokens)

    def __len__(self):
        return len(self.offsets) - 1

    @property
    def label_names(self):
        return self.header["label_names"]

    def padded(self, rows):
        """The rows as Transformers takes them, padded to the longest: input_ids, token_type_ids, attention_mask, and labels
        or start_positions and end_positions."""
        import torch
        spans = [(int(self.offsets[row]), int(self.offsets[row + 1])) for row in rows]
        longest = max(end - begin for begin, end in spans)
        batch = {name: torch.zeros(len(rows), longest, dtype=torch.long)
                 for name in ("input_ids", "token_type_ids", "attention_mask")}
        for i, (begin, end) in enumerate(spans):
            batch["input_ids"][i, :end - begin] = torch.from_numpy(self.all_ids[begin:end].astype("int64"))
            batch["token_type_ids"][i, :end - begin] = torch.from_numpy(self.all_type_ids[begin:end].astype("int64"))
            batch["attention_mask"][i, :end - begin] = 1
        if self.task == "sequence-classification":
            batch["labels"] = torch.tensor([int(self.labels[row]) for row in rows])
        elif self.task == "question-answering":
            batch["start_positions"], batch["end_positions"] = torch.tensor(self.spans[rows].astype("int64")).T
        else:
            batch["labels"] = torch.full((len(rows), longest), NO_LABEL)
            for i, (begin, end) in enumerate(spans):
                batch["labels"][i, :end - begin] = torch.from_numpy(self.token_labels[begin:end].astype("int64"))
        return batch

    def wanted(self, rows, output):
        """The logits that the engine dumps, row by row: of every example, of every labelled token, or (start, end) of every
        token."""
        import torch
        if self.task == "sequence-classification":
            return output.logits
        batch = self.padded(rows)
        if self.task == "question-answering":
            return torch.stack((output.start_logits, output.end_logits), -1)[batch["attention_mask"].bool()]
        labelled = batch["labels"] != NO_LABEL
        if self.task == "causal-lm":  # a token's label is predicted where the token before it stands
            labelled = torch.cat((labelled[:, 1:], torch.zeros_like(labelled[:, :1])), 1)
        return output.logits[labelled]


def model_inputs(batch, config):
    """The fields that this family's model takes, padded with its own token: only BERT and RoBERTa have token types (GPT-2
    would add word embeddings)."""
    batch = batch | {"input_ids": batch["input_ids"].masked_fill(batch["attention_mask"] == 0, config.pad_token_id or 0)}
    return {name: value for name, value in batch.items()
            if name != "token_type_ids" or getattr(config, "type_vocab_size", 0) > 0}


def run(model, batch):
    """One forward. PEFT 0.21's PeftModelForQuestionAnswering takes token types and does not pass them on: its inner model is
    called."""
    inner = model.base_model if hasattr(model, "peft_config") else model
    return inner(**model_inputs(batch, model.config))
