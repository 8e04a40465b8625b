"""Natural Questions: Google's simplified JSON lines, or the lists of questions with passages that DPR made of them."""

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import parse_qs, urlparse

from qgrag.corpus.report import CorpusReport
from qgrag.evaluation.datasets.files import Entry, entries, read_json, read_json_lines
from qgrag.evaluation.datasets.layout import Layout, document_key, passage_key, pool_passages
from qgrag.evaluation.datasets.records import Question

TAG = re.compile(r"</?[A-Za-z][^>]*>")
CONTEXTS = ("positive_ctxs", "hard_negative_ctxs", "negative_ctxs")
NO_CANDIDATE = -1


def read_documents(path: Path) -> CorpusReport:
    """The passages of all questions, pooled.

    In Google's form a passage is a top-level long-answer candidate without its tags, titled by its page's address. In
    DPR's it is a context, positive or negative.
    """
    passages = (passage for entry in _entries(path) for passage in _passages(entry, path))
    return pool_passages(passages, path.name)


def read_questions(path: Path) -> list[Question]:
    """Questions of lines {"example_id", "question_text", "document_text", "long_answer_candidates", "annotations"}, or
    of a list of {"question", "answers", "positive_ctxs"}.

    The gold is one passage, since others that answer the question stand in for it and are not needed besides. In
    Google's form it is that of the long answer that most annotators chose (of equals, the first in the file), in DPR's
    the first positive context. What else holds the answer is in the corpus but is no hit, so that figures err on the
    low side. A question without gold is of type `null`. Answers are those of all annotators, in Google's form short
    answers, `yes` or `no`. DPR's questions are numbered from 0.
    """
    read = _dpr_question if _is_dpr(path) else _google_question
    return [read(entry, number) for number, entry in enumerate(_entries(path))]


def _is_dpr(path: Path) -> bool:
    return path.suffix == ".json"


def _entries(path: Path) -> Iterator[Entry]:
    if _is_dpr(path):
        return entries(path, read_json(path, list, "a list of questions"), "question ")
    return read_json_lines(path)


def _passages(entry: Entry, path: Path) -> Iterator[tuple[str, str]]:
    if _is_dpr(path):
        for field in CONTEXTS:
            if field in entry.values:
                yield from (_dpr_passage(context) for context in entry.entries(field))
        return
    title, tokens = _title(entry), _tokens(entry)
    for candidate in entry.entries("long_answer_candidates"):
        if candidate.values.get("top_level") is True:
            yield title, _text(tokens, candidate)


def _dpr_passage(context: Entry) -> tuple[str, str]:
    return context.text("title"), context.text("text")


def _dpr_question(entry: Entry, number: int) -> Question:
    first = next(entry.entries("positive_ctxs"), None)
    gold = (passage_key(*_dpr_passage(first)),) if first else ()
    kind = "single" if gold else "null"
    return Question(str(number), entry.text("question"), entry.one_or_more_texts("answers"), gold, kind)


def _google_question(entry: Entry, _: int) -> Question:
    title, tokens = _title(entry), _tokens(entry)
    candidates = list(entry.entries("long_answer_candidates"))
    answers: dict[str, None] = {}
    chosen: Counter[str] = Counter()
    for annotation in entry.entries("annotations"):
        long = Entry(entry.path, f"{annotation.label}, long_answer", annotation.get("long_answer", dict, "an object"))
        place = long.get("candidate_index", int, "a position")
        if place == NO_CANDIDATE:
            continue
        if not 0 <= place < len(candidates):
            raise long.error("candidate_index", f"has to be below {len(candidates)}, not {place}")
        chosen[passage_key(title, _text(tokens, _top_level(candidates, place)))] += 1
        for short in annotation.entries("short_answers"):
            answers[_text(tokens, short)] = None
        said = str(annotation.values.get("yes_no_answer", "NONE"))
        if said != "NONE":
            answers[said.lower()] = None
    id_ = str(entry.values["example_id"]) if "example_id" in entry.values else entry.text("example_id")
    gold = tuple(name for name, _ in chosen.most_common(1))
    return Question(id_, entry.text("question_text"), tuple(answers), gold, "single" if gold else "null")


def _top_level(candidates: list[Entry], place: int) -> Entry:
    """The candidate, or the top-level one that holds it."""
    wanted = candidates[place]
    start, end = _span(wanted)
    for candidate in candidates:
        first, last = _span(candidate)
        if candidate.values.get("top_level") is True and first <= start and end <= last:
            return candidate
    return wanted


def _span(entry: Entry) -> tuple[int, int]:
    return entry.get("start_token", int, "a position"), entry.get("end_token", int, "a position")


def _text(tokens: list[str], entry: Entry) -> str:
    start, end = _span(entry)
    return " ".join(token for token in tokens[start:end] if not TAG.fullmatch(token))


def _tokens(entry: Entry) -> list[str]:
    return entry.text("document_text").split(" ")


def _title(entry: Entry) -> str:
    """The page's title in its address; the address where it has none."""
    address = entry.text("document_url")
    titles = parse_qs(urlparse(address).query).get("title")
    return titles[0].replace("_", " ") if titles else address


LAYOUT = Layout(read_documents, read_questions, ("*nq*.jsonl", "*nq*.json", "*.jsonl", "*.json"), gold_key=document_key)
