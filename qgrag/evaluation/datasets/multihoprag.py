"""MultiHop-RAG: news articles and questions whose evidence cites them by address."""

from pathlib import Path

from qgrag.corpus.readers.json_list import UniqueNames
from qgrag.corpus.records import Document
from qgrag.corpus.report import CorpusReport
from qgrag.evaluation.datasets.files import entries, read_json
from qgrag.evaluation.datasets.layout import Layout
from qgrag.evaluation.datasets.records import Question


def read_documents(path: Path) -> CorpusReport:
    """Articles of a list of {"title", "body", "url"}; the id is the address."""
    documents = [
        Document(entry.text("url"), entry.text("body"), entry.text("title"), {"source": path.name})
        for entry in entries(path, read_json(path, list, "a list of articles"), "article ")
    ]
    unique = UniqueNames(document.id for document in documents)
    return CorpusReport([Document(unique(d.id), d.text, d.title, d.metadata) for d in documents])


def read_questions(path: Path) -> list[Question]:
    """Questions of a list of {"query", "answer", "question_type", "evidence_list": [{"url"}]}, numbered from 0.

    The type is the publisher's without its ending `_query`: `inference`, `comparison`, `temporal`, `null`.
    """
    published = read_json(path, list, "a list of questions")
    return [
        Question(
            id=str(number),
            text=entry.text("query"),
            answers=entry.one_or_more_texts("answer"),
            gold=tuple(dict.fromkeys(evidence.text("url") for evidence in entry.entries("evidence_list"))),
            type=entry.text("question_type").lower().removesuffix("_query"),
        )
        for number, entry in enumerate(entries(path, published, "question "))
    ]


LAYOUT = Layout(read_documents, read_questions, ("corpus.json",), ("MultiHopRAG.json",))
