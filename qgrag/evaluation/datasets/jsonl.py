"""A user's own questions: JSON lines over any corpus that the readers know."""

from pathlib import Path

from qgrag.evaluation.datasets.files import read_json_lines
from qgrag.evaluation.datasets.layout import Layout, corpus_reader
from qgrag.evaluation.datasets.records import Question


def read_questions(path: Path) -> list[Question]:
    """Questions of lines {"id", "question", "documents", "answer", "type"}.

    `documents` lists the ids that hold the evidence; it is empty for an unanswerable question. A list among them is a
    group of documents that stand in for each other: in [["a", "b"], "c"], c is needed, and a or b. `answer` is a text
    or a list of them and may be absent. `type` defaults to `null`, `single` or `multi` by the number of groups.
    """
    questions = []
    for entry in read_json_lines(path):
        groups = entry.groups("documents")
        gold = tuple(id_ for group in groups for id_ in group)
        kind = ("null", "single", "multi")[min(len(groups), 2)]
        if "type" in entry.values:
            kind = entry.text("type").lower()
        groups = groups if len(gold) > len(groups) else ()
        answers = entry.one_or_more_texts("answer")
        questions.append(Question(entry.text("id"), entry.text("question"), answers, gold, kind, groups))
    return questions


LAYOUT = Layout(corpus_reader("auto"), read_questions, ("corpus.jsonl",), ("questions.jsonl",), folder_is_corpus=True)
