"""LiHua-World: a year of chat records; evidence is given as time stamps, which are the documents' ids."""

from pathlib import Path

from qgrag.errors import InputError
from qgrag.evaluation.datasets.files import Entry, read_json
from qgrag.evaluation.datasets.layout import Layout, corpus_reader
from qgrag.evaluation.datasets.records import Question

SEPARATOR = "<and>"
NO_EVIDENCE = "N/A"


def read_questions(path: Path) -> list[Question]:
    """Questions of `query_set.json`: an object from id to question, answer, evidence and type."""
    published = read_json(path, dict, 'an object {"id": {"question", "answer", "evidence", "type"}}')
    questions = []
    for id_, values in published.items():
        if not isinstance(values, dict):
            raise InputError(f"{path}, question {id_!r}: expected an object, not {values!r}")
        entry = Entry(path, f"question {id_!r}", values)
        stamps = (stamp.strip() for stamp in entry.text("evidence").split(SEPARATOR))
        gold = tuple(stamp for stamp in stamps if stamp not in ("", NO_EVIDENCE))
        answers = (entry.text("answer"),)
        questions.append(Question(id_, entry.text("question"), answers, gold, entry.text("type").lower()))
    return questions


LAYOUT = Layout(
    corpus_reader("lihuaworld"), read_questions, ("LiHuaWorld.zip",), ("query_set.json", "query_set_dev.json")
)
