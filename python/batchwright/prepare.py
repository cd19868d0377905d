"""Tokenises a data set once, into the token file that the C++ programs map (src/data/token_file.h has its layout).

    python -m batchwright.prepare [FILE]

The input (FILE, else standard input) is JSON lines. The first is the request: {"tokenizer", "output", "max_length",
"label_names", "content_id", "rows", "pairs", "source_hash", "tokenizer_hash"}; each of the others is a row,
{"text", "label"} or, when pairs is true, {"text", "text_pair", "label"}, label being an index into label_names.
Standard output is JSON lines: {"rows_done"} as it goes on, {"failed": message, "row": index or null} when it cannot,
{"done": true} last. Truncation keeps the special tokens and takes from the longer text of a pair first, as
Transformers does; nothing is padded.
"""
import array
import itertools
import json
import os
import struct
import sys

FORMAT_VERSION = 1
ALIGNMENT = 64
ROWS_PER_CHUNK = 2048


class Failure(Exception):
    """What the caller should tell its user; `row` counts from 0 and is None when it is no row's fault."""

    def __init__(self, message, row=None):
        super().__init__(message)
        self.row = row


def say(**message):
    print(json.dumps(message), flush=True)


def load_tokenizer(path, max_length, pairs):
    try:
        from tokenizers import Tokenizer
    except ImportError as error:
        raise Failure(f"the Python at {sys.executable} has no 'tokenizers' module ({error})") from error
    try:
        tokenizer = Tokenizer.from_file(path)
    except Exception as error:  # tokenizers raises bare Exception
        raise Failure(f"{path} is not a tokenizer that tokenizers reads ({error})") from error
    tokenizer.no_padding()
    special = tokenizer.num_special_tokens_to_add(is_pair=pairs)
    if max_length <= special:
        raise Failure(f"a maximum length of {max_length} leaves no room beside {special} special tokens")
    tokenizer.enable_truncation(max_length)
    return tokenizer


class Rows:
    """The arrays of the token file while they grow."""

    def __init__(self):
        self.offsets = array.array("Q", [0])
        self.ids = array.array("i")
        self.type_ids = array.array("B")
        self.labels = array.array("i")
        self.truncated = 0

    def __len__(self):
        return len(self.labels)

    def add(self, encoding, label):
        if not encoding.ids:
            raise Failure("its text has no tokens", len(self))
        if max(encoding.type_ids) > 255:
            raise Failure("a token type above 255 does not fit the token file", len(self))
        self.ids.extend(encoding.ids)
        self.type_ids.extend(encoding.type_ids)
        self.offsets.append(len(self.ids))
        self.labels.append(label)
        self.truncated += bool(encoding.overflowing)


def tokenise(lines, tokenizer, pairs):
    rows = Rows()
    while chunk := [json.loads(line) for line in itertools.islice(lines, ROWS_PER_CHUNK)]:
        texts = [(row["text"], row["text_pair"]) if pairs else row["text"] for row in chunk]
        for row, encoding in zip(chunk, tokenizer.encode_batch(texts)):
            rows.add(encoding, row["label"])
        say(rows_done=len(rows))
    return rows


def aligned(position):
    return -(-position // ALIGNMENT) * ALIGNMENT


def file_header(rows, request):
    """The header's bytes and the arrays with their places. The places stand in the header whose length moves them:
    the first array starts at the first aligned byte after a header padded to hold any place."""
    arrays = {"offsets": rows.offsets, "ids": rows.ids, "type_ids": rows.type_ids, "labels": rows.labels}
    header = {"rows": len(rows), "tokens": len(rows.ids), "max_length": request["max_length"],
              "truncated_rows": rows.truncated, "label_names": request["label_names"],
              "content_id": request["content_id"], "source_hash": request["source_hash"],
              "tokenizer_hash": request["tokenizer_hash"]}
    room = len(json.dumps(header)) + 200
    places, position = {}, aligned(16 + room)
    for name, values in arrays.items():
        places[name] = position
        position = aligned(position + len(values) * values.itemsize)
    text = json.dumps(header | {"arrays": places}).encode()
    return text.ljust(room), [(places[name], values) for name, values in arrays.items()]


def write_token_file(path, rows, request):
    """A reader sees the whole file or none: written beside, synced, renamed."""
    header, arrays = file_header(rows, request)
    partial = f"{path}.{os.getpid()}.partial"
    try:
        with open(partial, "wb") as out:
            out.write(b"BWTOKENS" + struct.pack("<II", FORMAT_VERSION, len(header)) + header)
            for place, values in arrays:
                out.write(b"\0" * (place - out.tell()))
                values.tofile(out)
            out.flush()
            os.fsync(out.fileno())
        os.replace(partial, path)
    except OSError as error:
        raise Failure(f"{path} cannot be written ({error.strerror})") from error
    finally:
        if os.path.exists(partial):
            os.unlink(partial)


def prepare(lines):
    request = json.loads(next(lines))
    if sys.byteorder != "little" or array.array("i").itemsize != 4:
        raise Failure("the token file is written on little-endian machines only")
    tokenizer = load_tokenizer(request["tokenizer"], request["max_length"], request["pairs"])
    rows = tokenise(lines, tokenizer, request["pairs"])
    if len(rows) != request["rows"]:
        raise Failure(f"{len(rows)} rows arrived of {request['rows']}")
    write_token_file(request["output"], rows, request)


def main():
    try:
        with open(sys.argv[1], "rb") if len(sys.argv) > 1 else sys.stdin.buffer as lines:
            prepare(iter(lines))
    except Failure as failure:
        say(failed=str(failure), row=failure.row)
        return 1
    say(done=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
