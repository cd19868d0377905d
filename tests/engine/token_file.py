"""Reads a token file (src/data/token_file.h) and pads rows: written apart from the C++ reader, so that each checks the other."""
import json
import struct

import numpy


class TokenFile:
    def __init__(self, path):
        with open(path, "rb") as file:
            content = file.read()
        assert content[:8] == b"BWTOKENS", f"{path} is not a token file"
        version, length = struct.unpack_from("<II", content, 8)
        assert version == 1, f"{path} has format version {version}"
        self.header = json.loads(content[16:16 + length])
        rows, tokens = self.header["rows"], self.header["tokens"]

        def array(name, dtype, count):
            return numpy.frombuffer(content, dtype, count, self.header["arrays"][name])

        self.offsets = array("offsets", "<u8", rows + 1)
        self.all_ids = array("ids", "<i4", tokens)
        self.all_type_ids = array("type_ids", "u1", tokens)
        self.labels = array("labels", "<i4", rows)

    def __len__(self):
        return len(self.labels)

    @property
    def label_names(self):
        return self.header["label_names"]

    def padded(self, rows):
        """The rows as Transformers takes them: input_ids, token_type_ids, attention_mask, labels, padded to the longest."""
        import torch
        spans = [(int(self.offsets[row]), int(self.offsets[row + 1])) for row in rows]
        longest = max(end - begin for begin, end in spans)
        batch = {name: torch.zeros(len(rows), longest, dtype=torch.long)
                 for name in ("input_ids", "token_type_ids", "attention_mask")}
        for i, (begin, end) in enumerate(spans):
            batch["input_ids"][i, :end - begin] = torch.from_numpy(self.all_ids[begin:end].astype("int64"))
            batch["token_type_ids"][i, :end - begin] = torch.from_numpy(self.all_type_ids[begin:end].astype("int64"))
            batch["attention_mask"][i, :end - begin] = 1
        batch["labels"] = torch.tensor([int(self.labels[row]) for row in rows])
        return batch


def model_inputs(batch, config):
    """The fields that this family's model takes: only BERT and RoBERTa have token types (GPT-2 would add word embeddings)."""
    return {name: value for name, value in batch.items()
            if name != "token_type_ids" or getattr(config, "type_vocab_size", 0) > 0}
