"""SQuAD 1.1 and 2.0 files: each paragraph is a document and the gold of its questions."""

from operator import attrgetter
from pathlib import Path

from qgrag.evaluation.datasets.files import Entry, read_json
from qgrag.evaluation.datasets.layout import Layout, corpus_reader
from qgrag.evaluation.datasets.records import Question


def read_questions(path: Path) -> list[Question]:
    """Questions of a SQuAD file, whose gold is their paragraph's text.

    Questions marked `is_impossible` (SQuAD 2.0) are of type `null` and have no gold.
    """
    root = Entry(path, "top level", read_json(path, dict, 'an object {"data": [...]}'))
    questions = []
    for article in root.entries("data"):
        for paragraph in article.entries("paragraphs"):
            context = paragraph.text("context")
            for entry in paragraph.entries("qas"):
                answerable = entry.values.get("is_impossible") is not True
                answers = dict.fromkeys(answer.text("text") for answer in entry.entries("answers"))
                questions.append(
                    Question(
                        id=entry.text("id"),
                        text=entry.text("question"),
                        answers=tuple(answers),
                        gold=(context,) if answerable else (),
                        type="single" if answerable else "null",
                    )
                )
    return questions


LAYOUT = Layout(corpus_reader("squad"), read_questions, ("*.json",), gold_key=attrgetter("text"))
