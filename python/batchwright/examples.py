"""From examples to rows of tokens: what a model sees of a text, a sentence, a question or a document.

Each example is a JSON line: {"text", "label"} or {"text", "text_pair", "label"} (sequence-classification, label an index
into label_names), {"words", "labels"} (token-classification), {"context", "questions": [{"id", "question", "answers":
[{"text", "start"}]}]} (question-answering; several examples a line), {"text"} or {"prompt", "text"} (causal-lm).
Truncation keeps the special tokens, as Transformers does; nothing is padded.
"""
import array
import itertools
import json
import sys

CHUNK = 1024  # examples tokenised at once
NO_LABEL = -100


class Failure(Exception):
    """What the caller should tell its user; `example` counts from 0 and is None when it is no example's fault."""

    def __init__(self, message, example=None):
        super().__init__(message)
        self.example = example


class Rows:
    """The arrays of a token file while they grow."""

    def __init__(self):
        if sys.byteorder != "little" or array.array("i").itemsize != 4:
            raise Failure("the token file is written on little-endian machines only")
        self.offsets = array.array("Q", [0])
        self.ids = array.array("i")
        self.type_ids = array.array("B")
        self.truncated = self.skipped = 0

    def __len__(self):
        return len(self.offsets) - 1

    def add_tokens(self, ids, type_ids, example):
        if not ids:
            raise Failure("its text has no tokens", example)
        if max(type_ids) > 255:
            raise Failure("a token type above 255 does not fit the token file", example)
        self.ids.extend(ids)
        self.type_ids.extend(type_ids)
        self.offsets.append(len(self.ids))

    def arrays(self):
        return {"offsets": self.offsets, "ids": self.ids, "type_ids": self.type_ids}

    def counts(self):
        return {}


class LabelledRows(Rows):
    """One label a row ("labels"), or one a token ("token_labels")."""

    def __init__(self, name):
        super().__init__()
        self.name, self.labels = name, array.array("i")

    def arrays(self):
        return super().arrays() | {self.name: self.labels}


class QuestionRows(Rows):
    """Windows of contexts: where the answer is, where every token stands in the context, and all texts."""

    def __init__(self):
        super().__init__()
        self.spans, self.characters = array.array("i"), array.array("i")
        self.row_questions, self.questions = array.array("I"), array.array("I")
        self.strings, self.text = array.array("Q", [0]), bytearray()

    def add_string(self, text):
        self.text += text.encode()
        self.strings.append(len(self.text))
        return len(self.strings) - 2

    def arrays(self):
        return super().arrays() | {
            "spans": self.spans, "characters": self.characters, "row_questions": self.row_questions,
            "questions": self.questions, "strings": self.strings, "text": array.array("B", self.text)}

    def counts(self):
        return {"questions": len(self.questions) // 4, "strings": len(self.strings) - 1, "text_bytes": len(self.text)}


def load_tokenizer(path, words=False):
    """`words`: for texts that come as words; a byte-level tokenizer must then begin each with a space."""
    try:
        from tokenizers import Tokenizer
    except ImportError as error:
        raise Failure(f"the Python at {sys.executable} has no 'tokenizers' module ({error})") from error
    try:
        with open(path, encoding="utf-8") as file:
            document = json.load(file)
        if words:
            add_prefix_spaces(document.get("pre_tokenizer"))
        tokenizer = Tokenizer.from_str(json.dumps(document))
    except Exception as error:  # tokenizers raises bare Exception
        raise Failure(f"{path} is not a tokenizer that tokenizers reads ({error})") from error
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return tokenizer


def add_prefix_spaces(pre_tokenizer):
    if isinstance(pre_tokenizer, dict):
        if pre_tokenizer.get("type") == "ByteLevel":
            pre_tokenizer["add_prefix_space"] = True
        for part in pre_tokenizer.get("pretokenizers", []):
            add_prefix_spaces(part)


def require_room(tokenizer, max_length, pairs):
    special = tokenizer.num_special_tokens_to_add(is_pair=pairs)
    if max_length <= special:
        raise Failure(f"a maximum length of {max_length} leaves no room beside {special} special tokens")


def chunks(lines):
    lines = iter(lines)
    while chunk := [json.loads(line) for line in itertools.islice(lines, CHUNK)]:
        yield chunk


def tokenise_texts(request, lines, progress):
    tokenizer, pairs = load_tokenizer(request["tokenizer"]), request["pairs"]
    require_room(tokenizer, request["max_length"], pairs)
    tokenizer.enable_truncation(request["max_length"])
    rows = LabelledRows("labels")
    for chunk in chunks(lines):
        texts = [(row["text"], row["text_pair"]) if pairs else row["text"] for row in chunk]
        for row, encoding in zip(chunk, tokenizer.encode_batch(texts)):
            rows.add_tokens(encoding.ids, encoding.type_ids, len(rows))
            rows.labels.append(row["label"])
            rows.truncated += bool(encoding.overflowing)
        progress(len(rows))
    return rows, len(rows)


def tokenise_words(request, lines, progress):
    """The first sub-word of every word has the word's label, the others and special tokens have none."""
    tokenizer = load_tokenizer(request["tokenizer"], words=True)
    require_room(tokenizer, request["max_length"], False)
    tokenizer.enable_truncation(request["max_length"])
    rows, done = LabelledRows("token_labels"), 0
    for chunk in chunks(lines):
        encodings = tokenizer.encode_batch([row["words"] for row in chunk], is_pretokenized=True)
        for row, encoding in zip(chunk, encodings):
            words = encoding.word_ids
            labels = [NO_LABEL if word is None or (i > 0 and words[i - 1] == word) else row["labels"][word]
                      for i, word in enumerate(words)]
            if all(label == NO_LABEL for label in labels):
                rows.skipped += 1
            else:
                rows.add_tokens(encoding.ids, encoding.type_ids, done)
                rows.labels.extend(labels)
                rows.truncated += bool(encoding.overflowing)
            done += 1
        progress(done)
    return rows, done


def bytes_before(context):
    """byte[i]: how many bytes of UTF-8 come before character i."""
    if context.isascii():
        return range(len(context) + 1)
    return list(itertools.accumulate((len(character.encode()) for character in context), initial=0))


def answer_span(characters, context_tokens, answer):
    """First and last token of an answer [begin, end) in characters; None when it is not wholly in this window. The
    tokens are those whose edges Transformers' run_qa takes: the last that begins at or before the answer's begin, and
    the first that ends at or after its end."""
    begin, end = answer
    first, last = context_tokens[0], context_tokens[-1]
    if characters[first][0] > begin or characters[last][1] < end:
        return None
    start = max(token for token in context_tokens if characters[token][0] <= begin)
    stop = min(token for token in context_tokens if characters[token][1] >= end)
    return (start, stop) if start <= stop else None


class Windows:
    """Cuts question and context into windows that share doc_stride tokens, and finds the answer in each."""

    def __init__(self, request):
        self.max_length, self.stride = request["max_length"], request["doc_stride"]
        self.plain = load_tokenizer(request["tokenizer"])
        self.cutting = load_tokenizer(request["tokenizer"])
        self.cutting.enable_truncation(self.max_length, stride=self.stride, strategy="only_second")
        self.special = self.plain.num_special_tokens_to_add(is_pair=True)

    def encode(self, question, context, example):
        # tokenizers aborts where the stride leaves no room to go forward.
        room = self.max_length - self.special - len(self.plain.encode(question, add_special_tokens=False).ids)
        if room <= self.stride:
            raise Failure(f"its question leaves {max(room, 0)} of {self.max_length} tokens for the context, and "
                          f"neighbouring windows share {self.stride}: raise --max-length or lower --doc-stride", example)
        encoding = self.cutting.encode(question, context)
        return [encoding, *encoding.overflowing]


def tokenise_questions(request, lines, progress):
    windows, rows, done = Windows(request), QuestionRows(), 0
    for line in lines:
        entry = json.loads(line)
        context = entry["context"]
        before, context_string = bytes_before(context), rows.add_string(context)
        for question in entry["questions"]:
            answers = [rows.add_string(answer["text"]) for answer in question["answers"]]
            first_answer = answers[0] if answers else 0
            rows.questions.extend((rows.add_string(question["id"]), context_string, first_answer, len(answers)))
            target = None
            if answers:
                begin = question["answers"][0]["start"]
                target = (begin, begin + len(question["answers"][0]["text"]))
            encodings = windows.encode(question["question"].lstrip(), context, done)
            rows.truncated += len(encodings) > 1
            for encoding in encodings:
                add_window(rows, encoding, target, before, done)
            done += 1
            if done % CHUNK == 0:
                progress(done)
    progress(done)
    return rows, done


def add_window(rows, encoding, target, before, question):
    in_context = [token for token, part in enumerate(encoding.sequence_ids) if part == 1]
    span = answer_span(encoding.offsets, in_context, target) if target and in_context else None
    rows.add_tokens(encoding.ids, encoding.type_ids, question)
    rows.spans.extend(span or (0, 0))
    rows.row_questions.append(question)
    for token, (begin, end) in enumerate(encoding.offsets):
        inside = encoding.sequence_ids[token] == 1
        rows.characters.extend((before[begin], before[end]) if inside else (-1, -1))


def end_of_text_id(tokenizer, end_of_text):
    return tokenizer.token_to_id(end_of_text) if isinstance(end_of_text, str) else end_of_text


def labelled_document(encoding, prompt_characters, end_id):
    """Ids, types and labels of one document; a prompt's tokens, and what comes before a completion, have no label."""
    ids, type_ids = list(encoding.ids), list(encoding.type_ids)
    first = 0
    if prompt_characters is not None:
        starts = [token for token, special in enumerate(encoding.special_tokens_mask)
                  if not special and encoding.offsets[token][0] >= prompt_characters]
        first = starts[0] if starts else len(ids)
    if end_id is not None and (not ids or ids[-1] != end_id):
        ids.append(end_id)
        type_ids.append(type_ids[-1] if type_ids else 0)
    return ids, type_ids, [NO_LABEL] * first + ids[first:]


class Blocks:
    """Documents as rows: each its own, cut at max_length, or one after the other in blocks of max_length tokens."""

    def __init__(self, rows, max_length, packing):
        self.rows, self.max_length, self.packing = rows, max_length, packing
        self.pending = ([], [], [])

    def add(self, parts, example):
        if self.packing:
            for pending, part in zip(self.pending, parts):
                pending.extend(part)
            while len(self.pending[0]) >= self.max_length:
                self.write([part[:self.max_length] for part in self.pending], example)
                self.pending = tuple(part[self.max_length:] for part in self.pending)
        else:
            self.rows.truncated += len(parts[0]) > self.max_length
            self.write([part[:self.max_length] for part in parts], example)

    def finish(self, example):
        if self.pending[0]:
            self.write(self.pending, example)

    def write(self, parts, example):
        ids, type_ids, labels = parts
        if all(label == NO_LABEL for label in labels[1:]):  # nothing is predicted here
            self.rows.skipped += 1
            return
        self.rows.add_tokens(ids, type_ids, example)
        self.rows.labels.extend(labels)


def tokenise_documents(request, lines, progress):
    tokenizer = load_tokenizer(request["tokenizer"])
    rows, done = LabelledRows("token_labels"), 0
    plain = request["plain"]
    packing = request["packing"] if request["packing"] is not None else plain
    blocks = Blocks(rows, request["max_length"], packing)
    end_id = None if plain else end_of_text_id(tokenizer, request["end_of_text"])
    for chunk in chunks(lines):
        texts = [row.get("prompt", "") + row["text"] for row in chunk]
        for row, text, encoding in zip(chunk, texts, tokenizer.encode_batch(texts)):
            prompt = len(row["prompt"]) if "prompt" in row else None
            if packing or text.strip():
                blocks.add(labelled_document(encoding, prompt, end_id), done)
            done += 1
        progress(done)
    blocks.finish(done - 1)
    return rows, done


def tokenise(request, lines, progress=lambda done: None):
    """The rows of all examples, and how many examples there were."""
    task = {"sequence-classification": tokenise_texts, "token-classification": tokenise_words,
            "question-answering": tokenise_questions, "causal-lm": tokenise_documents}[request["task"]]
    return task(request, lines, progress)
