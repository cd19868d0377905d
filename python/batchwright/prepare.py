"""Tokenises a data set once, into the token file that the C++ programs map (src/data/token_file.h has its layout).

    python -m batchwright.prepare [FILE]

The input (FILE, else standard input) is JSON lines. The first is the request: {"task", "tokenizer", "output",
"max_length", "label_names", "content_id", "examples", "source_hash", "tokenizer_hash"} and what the task asks for
("pairs", "doc_stride", "packing", "plain", "end_of_text"); the others hold the examples (batchwright/examples.py).
Standard output is JSON lines: {"examples_done"} as it goes on, {"failed": message, "example": index or null} when it
cannot, {"done": true} last.
"""
import json
import os
import struct
import sys

from batchwright import examples

FORMAT_VERSION = 2
ALIGNMENT = 64


def say(**message):
    print(json.dumps(message), flush=True)


def aligned(position):
    return -(-position // ALIGNMENT) * ALIGNMENT


def file_header(rows, request):
    """The header's bytes and the arrays with their places. The places stand in the header whose length moves them:
    the first array starts at the first aligned byte after a header padded to hold any place."""
    arrays = rows.arrays()
    header = {name: request[name] for name in ("task", "max_length", "label_names", "content_id", "source_hash",
                                               "tokenizer_hash")}
    header |= {"rows": len(rows), "tokens": len(rows.ids), "truncated_rows": rows.truncated,
               "skipped_rows": rows.skipped} | rows.counts()
    room = len(json.dumps(header)) + 50 * (len(arrays) + 1)
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
        raise examples.Failure(f"{path} cannot be written ({error.strerror})") from error
    finally:
        if os.path.exists(partial):
            os.unlink(partial)


def prepare(lines):
    request = json.loads(next(lines))
    rows, done = examples.tokenise(request, lines, lambda count: say(examples_done=count))
    if done != request["examples"]:
        raise examples.Failure(f"{done} examples arrived of {request['examples']}")
    if len(rows) == 0:
        raise examples.Failure("no example has a label within the maximum length")
    write_token_file(request["output"], rows, request)


def main():
    try:
        with open(sys.argv[1], "rb") if len(sys.argv) > 1 else sys.stdin.buffer as lines:
            prepare(iter(lines))
    except examples.Failure as failure:
        say(failed=str(failure), example=failure.example)
        return 1
    say(done=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
