"""A user's own questions: JSON lines over any corpus that the readers know."""

from pathlib import Path

from qgrag.evaluation.datasets.files import read_json_lines
from qgrag.evaluation.datasets.layout import Layout, corpus_reader
from qgrag.evaluation.datasets.records import Question


def read_questions(path: Path) -> list[Question]:
    """Questions of lines {"id", "question", "documents", "answer", "type"}.

    `documents` lists the ids that hold the evidence, empty for an unanswerable question. `answer` is a text
    or a list of them and may be absent. `type` defaults to `null`, `single` or `multi` by the number of
    documents.
    """
    questions = []
    for entry in read_json_lines(path):
        gold = entry.texts("documents")
        kind = entry.text("type").lower() if "type" in entry.values else ("null", "single", "multi")[min(len(gold), 2)]
        questions.append(
            Question(entry.text("id"), entry.text("question"), entry.one_or_more_texts("answer"), gold, kind)
        )
    return questions


LAYOUT = Layout(corpus_reader("auto"), read_questions, ("corpus.jsonl",), ("questions.jsonl",), folder_is_corpus=True)
