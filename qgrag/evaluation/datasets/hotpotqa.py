"""HotpotQA's format, which 2WikiMultihopQA's own release shares: ten passages with each question, some of them gold."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from qgrag.corpus.report import CorpusReport
from qgrag.evaluation.datasets.files import Entry, entries, read_json
from qgrag.evaluation.datasets.layout import Layout, document_key, passage_key, pool_passages
from qgrag.evaluation.datasets.records import Question

DEFAULT_TYPE = "multi"


def read_documents(path: Path) -> CorpusReport:
    """The passages of all questions, pooled.

    A passage is its sentences, with a space between two that have none: HotpotQA's sentences begin with theirs,
    2WikiMultihopQA's do not.
    """
    return pool_passages((passage for entry in _entries(path) for passage in _passages(entry)), path.name)


def read_questions(path: Path) -> list[Question]:
    """Questions of a list of {"_id", "question", "answer", "type", "context", "supporting_facts"}.

    Test sets come without `answer`, `type` and `supporting_facts`: their questions are of type `multi` and have
    neither answers nor gold.
    """
    questions = []
    for entry in _entries(path):
        own = {title: passage_key(title, text) for title, text in _passages(entry)}
        facts = _pairs(entry, "supporting_facts") if "supporting_facts" in entry.values else ()
        gold = dict.fromkeys(own.get(title, title) for title, _ in facts)
        answers = entry.one_or_more_texts("answer")
        kind = entry.text("type").lower() if entry.values.get("type") else DEFAULT_TYPE
        questions.append(Question(entry.text("_id"), entry.text("question"), answers, tuple(gold), kind))
    return questions


def _entries(path: Path) -> Iterator[Entry]:
    return entries(path, read_json(path, list, "a list of questions"), "question ")


def _passages(entry: Entry) -> Iterator[tuple[str, str]]:
    for title, sentences in _pairs(entry, "context"):
        if not isinstance(sentences, list) or not all(isinstance(sentence, str) for sentence in sentences):
            raise entry.error("context", f"has to hold the sentences of {title!r} as a list of texts")
        yield title, _joined(sentences)


def _joined(sentences: Sequence[str]) -> str:
    text = ""
    for sentence in sentences:
        touching = text[-1:].strip() and sentence[:1].strip()
        text += f" {sentence}" if touching else sentence
    return text


def _pairs(entry: Entry, field: str) -> Iterator[list[Any]]:
    description = "a list of pairs that begin with a title"
    for pair in entry.get(field, list, description):
        if not isinstance(pair, list) or len(pair) != 2 or not isinstance(pair[0], str):
            raise entry.error(field, f"has to hold {description}, not {pair!r}")
        yield pair


LAYOUT = Layout(read_documents, read_questions, ("hotpot*.json", "*.json"), gold_key=document_key)
