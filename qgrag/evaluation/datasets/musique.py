"""MuSiQue: twenty paragraphs with each question, some of them gold; the id begins with the number of hops."""

from collections.abc import Iterator
from pathlib import Path

from qgrag.corpus.report import CorpusReport
from qgrag.evaluation.datasets.files import Entry, read_json_lines
from qgrag.evaluation.datasets.layout import Layout, document_key, passage_key, pool_passages
from qgrag.evaluation.datasets.records import Question

HOPS = ("2hop", "3hop", "4hop")
TWIN = "-unanswerable"


def read_documents(path: Path) -> CorpusReport:
    """The paragraphs of all questions, pooled."""
    entries = (paragraph for entry in read_json_lines(path) for paragraph in entry.entries("paragraphs"))
    return pool_passages(map(_passage, entries), path.name)


def read_questions(path: Path) -> list[Question]:
    """Questions of lines {"id", "question", "answer", "answer_aliases", "answerable", "paragraphs"}.

    The type is `2hop`, `3hop` or `4hop`, and `null` for a question marked as not answerable, which has neither gold nor
    answers. MuSiQue-Full has each question twice under one id, once without a paragraph that it needs; that one's
    id ends in `-unanswerable` here. Pooled paragraphs answer it all the same, since its twin's are among them: to
    measure retrieval take MuSiQue-Ans. The test sets' paragraphs do not say whether they support, so there is no gold.
    """
    questions = []
    for entry in read_json_lines(path):
        id_ = entry.text("id")
        answerable = entry.values.get("answerable") is not False
        kind = next((hops for hops in HOPS if id_.startswith(hops)), "multi") if answerable else "null"
        gold = dict.fromkeys(_gold(entry)) if answerable else ()
        given = (*entry.one_or_more_texts("answer"), *entry.one_or_more_texts("answer_aliases")) if answerable else ()
        name = id_ if answerable else f"{id_}{TWIN}"
        questions.append(Question(name, entry.text("question"), tuple(dict.fromkeys(given)), tuple(gold), kind))
    return questions


def _gold(entry: Entry) -> Iterator[str]:
    for paragraph in entry.entries("paragraphs"):
        if "is_supporting" in paragraph.values and paragraph.get("is_supporting", bool, "true or false"):
            yield passage_key(*_passage(paragraph))


def _passage(paragraph: Entry) -> tuple[str, str]:
    return paragraph.text("title"), paragraph.text("paragraph_text")


LAYOUT = Layout(read_documents, read_questions, ("musique*.jsonl", "*.jsonl"), gold_key=document_key)
