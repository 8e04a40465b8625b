"""GraphRAG-Bench (medical, novel): long texts and questions with reference answers, without gold documents."""

from pathlib import Path

from qgrag.evaluation.datasets.files import entries, read_json
from qgrag.evaluation.datasets.layout import Layout, corpus_reader
from qgrag.evaluation.datasets.records import Question


def read_questions(path: Path) -> list[Question]:
    """Questions of a list of {"id", "question", "answer", "question_type"}."""
    published = read_json(path, list, "a list of questions")
    return [
        Question(
            id=entry.text("id"),
            text=entry.text("question"),
            answers=entry.one_or_more_texts("answer"),
            gold=(),
            type=entry.text("question_type").lower(),
        )
        for entry in entries(path, published, "question ")
    ]


LAYOUT = Layout(
    corpus_reader("json"),
    read_questions,
    ("corpus.json", "medical.json", "novel.json"),
    ("questions.json", "questions_dev.json", "medical_questions.json", "novel_questions.json"),
)
