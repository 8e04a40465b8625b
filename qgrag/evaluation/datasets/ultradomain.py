"""UltraDomain: whole books and papers of one domain, each with questions about it."""

from pathlib import Path

from qgrag.corpus.records import Document
from qgrag.corpus.report import CorpusReport
from qgrag.evaluation.datasets.files import read_json_lines
from qgrag.evaluation.datasets.layout import Layout
from qgrag.evaluation.datasets.records import Question

# fmt: off
DOMAINS = (
    "agriculture", "art", "biography", "biology", "cooking", "cs", "fiction", "fin", "health", "history", "legal",
    "literature", "mathematics", "mix", "music", "philosophy", "physics", "politics", "psychology", "technology",
)
# fmt: on


def read_documents(path: Path) -> CorpusReport:
    """The contexts of all questions, each once; the id is the publisher's `context_id`."""
    documents: dict[str, Document] = {}
    for entry in read_json_lines(path):
        id_ = entry.text("context_id")
        if id_ not in documents:
            documents[id_] = Document(id_, entry.text("context"), "", {"source": path.name})
    return CorpusReport(list(documents.values()))


def read_questions(path: Path) -> list[Question]:
    """Questions of lines {"_id", "input", "context", "context_id", "answers", "label"}; the type is the label."""
    return [
        Question(
            id=entry.text("_id"),
            text=entry.text("input"),
            answers=entry.one_or_more_texts("answers"),
            gold=(entry.text("context_id"),),
            type=entry.text("label").lower() if "label" in entry.values else "single",
        )
        for entry in read_json_lines(path)
    ]


LAYOUT = Layout(read_documents, read_questions, (*(f"{domain}.jsonl" for domain in DOMAINS), "*.jsonl"))
