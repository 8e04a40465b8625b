import json
from itertools import pairwise

import pytest

from qgrag.corpus.readers import read_corpus
from qgrag.corpus.records import Document
from qgrag.demo import demo_path, demo_questions_path


@pytest.fixture(scope="module")
def notes() -> dict[str, Document]:
    report = read_corpus(demo_path())
    assert not report.problems
    return {document.id: document for document in report.documents}


@pytest.fixture(scope="module")
def questions() -> list[dict]:
    return [json.loads(line) for line in demo_questions_path().read_text(encoding="utf-8").splitlines()]


def test_notes_are_short_titled_and_distinct(notes: dict[str, Document]) -> None:
    assert 55 <= len(notes) <= 70
    assert len({note.content_hash for note in notes.values()}) == len(notes)
    for note in notes.values():
        assert note.text.startswith(f"# {note.title}\n")
        assert 80 <= len(note.text.split()) <= 160, note.id


def test_questions_are_forty_half_of_them_multi_hop(questions: list[dict]) -> None:
    assert len({question["id"] for question in questions}) == len(questions) == 40
    assert len({question["question"] for question in questions}) == 40
    assert [question["type"] for question in questions].count("multi") == 20
    for question in questions:
        assert set(question) == {"id", "question", "answer", "documents", "type"}
        hops = len(set(question["documents"]))
        assert hops == len(question["documents"])
        assert hops in {"single": {1}, "multi": {2, 3}}[question["type"]]


def test_every_answer_stands_in_its_last_note_only(questions: list[dict], notes: dict[str, Document]) -> None:
    for question in questions:
        *before, last = [notes[document].text for document in question["documents"]]
        assert question["answer"] in last, question["id"]
        assert not any(question["answer"] in text for text in before), question["id"]
        assert question["answer"] not in question["question"]


def test_multi_hop_questions_do_not_name_the_notes_they_lead_to(
    questions: list[dict], notes: dict[str, Document]
) -> None:
    for question in questions:
        for document in question["documents"][1:]:
            name = notes[document].title.split(" (")[0]
            assert name not in question["question"], question["id"]


def test_each_note_of_a_chain_names_the_next(questions: list[dict], notes: dict[str, Document]) -> None:
    for question in questions:
        chain = [notes[document] for document in question["documents"]]
        for note, following in pairwise(chain):
            last_word = following.title.split(" (")[0].split()[-1]
            assert last_word in note.text, (question["id"], following.id)
