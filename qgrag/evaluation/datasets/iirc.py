"""IIRC: passages with questions whose answers stand partly in the Wikipedia articles that they link to."""

import html
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from qgrag.corpus.report import CorpusReport
from qgrag.evaluation.datasets.files import Entry, entries, read_json
from qgrag.evaluation.datasets.layout import Layout, pool_passages
from qgrag.evaluation.datasets.records import Question

ARTICLES_FILE = "context_articles.json"
MAIN = "main"
TAG = re.compile(r"<[^>]*>")


def read_documents(path: Path) -> CorpusReport:
    """The questions' passages, and the linked articles, which `context_articles.json` beside them holds.

    Articles come as HTML by their title in lower case; tags are taken out. A link whose article is not there adds no
    document.
    """
    return pool_passages(_passages(path), path.name)


def read_questions(path: Path) -> list[Question]:
    """Questions of a list of {"pid", "title", "text", "links", "questions": [{"qid", "question", "context", ...}]}.

    The gold is the passage itself, where a piece of the context is from it, and the articles that the other pieces are
    from. Types are the answer's: `span`, `value`, `binary`, and `null` for a question that cannot be answered, which
    has no gold. Where a question has no `qid`, as in the test set, its id is the passage's `pid`, or its place in the
    file where there is none, and the question's place within the passage, both from 0: `p_7-0`.
    """
    questions = []
    for place, passage in enumerate(_main_passages(path)):
        title, pid = passage.text("title"), passage.values.get("pid", place)
        for number, entry in enumerate(passage.entries("questions")):
            id_ = entry.text("qid") if "qid" in entry.values else f"{pid}-{number}"
            answer = Entry(path, f"{entry.label}, answer", entry.get("answer", dict, "an object"))
            kind = answer.text("type").lower()
            if kind == "none":
                questions.append(Question(id_, entry.text("question"), (), (), "null"))
                continue
            names = (piece.text("passage") for piece in entry.entries("context"))
            gold = dict.fromkeys(_key(title if name == MAIN else name) for name in names)
            questions.append(Question(id_, entry.text("question"), _answers(answer, kind), tuple(gold), kind))
    return questions


def _main_passages(path: Path) -> Iterator[Entry]:
    return entries(path, read_json(path, list, "a list of passages with questions"), "passage ")


def _passages(path: Path) -> Iterator[tuple[str, str]]:
    linked: dict[str, str] = {}
    for passage in _main_passages(path):
        yield passage.text("title"), passage.text("text")
        for link in passage.entries("links"):
            target = link.text("target")
            linked.setdefault(_key(target), target)
    articles: Mapping[str, Any] = read_json(path.parent / ARTICLES_FILE, dict, "an object from titles to articles")
    texts = {_key(title): text for title, text in articles.items() if isinstance(text, str)}
    own = {_key(passage.text("title")) for passage in _main_passages(path)}
    for key, title in linked.items():
        if key in texts and key not in own:
            yield title, html.unescape(TAG.sub("", texts[key])).strip()


def _answers(answer: Entry, kind: str) -> tuple[str, ...]:
    if kind == "span":
        spans = [span.text("text") for span in answer.entries("answer_spans")]
        return (", ".join(spans),) if spans else ()
    value = str(answer.values.get("answer_value", "")).strip()
    unit = str(answer.values.get("answer_unit", "")).strip()
    if not value:
        raise answer.error("answer_value", "is missing or empty")
    return tuple(dict.fromkeys((value, f"{value} {unit}".strip())))


def _key(title: str) -> str:
    return title.strip().lower()


LAYOUT = Layout(
    read_documents,
    read_questions,
    ("dev.json", "test.json", "iirc*dev*.json", "iirc*test*.json", "train.json"),
    gold_key=lambda document: _key(document.title),
)
