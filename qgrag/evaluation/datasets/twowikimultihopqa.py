"""2WikiMultihopQA over its pooled passages: gold is the titles of the passages that a question needs."""

from pathlib import Path

from qgrag.evaluation.datasets.files import entries, read_json
from qgrag.evaluation.datasets.layout import Layout, corpus_reader
from qgrag.evaluation.datasets.records import Question

DEFAULT_TYPE = "multi"


def read_questions(path: Path) -> list[Question]:
    """Questions of a list of {"id", "question", "supporting_titles"}; "answer" and "type" may be there."""
    published = read_json(path, list, "a list of questions")
    questions = []
    for entry in entries(path, published, "question "):
        kind = entry.text("type").lower() if "type" in entry.values else DEFAULT_TYPE
        questions.append(
            Question(
                id=entry.text("id"),
                text=entry.text("question"),
                answers=entry.one_or_more_texts("answer"),
                gold=entry.texts("supporting_titles"),
                type=kind,
            )
        )
    return questions


LAYOUT = Layout(corpus_reader("json"), read_questions, ("corpus.json",), ("questions.json", "questions_dev.json"))
