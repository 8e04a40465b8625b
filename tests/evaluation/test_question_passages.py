"""Data sets whose questions bring their passages or cite addresses, on small files in the publishers' formats."""

import json
from pathlib import Path
from typing import Any

import pytest

from qgrag.errors import InputError
from qgrag.evaluation.datasets import load_dataset

HOTPOT = [
    {
        "_id": "h1",
        "question": "In which country was Ann's aunt born?",
        "answer": "Chile",
        "type": "bridge",
        "level": "hard",
        "supporting_facts": [["Ann", 0], ["Eve", 1], ["Eve", 0]],
        "context": [
            ["Ann", ["Ann is Eve's niece.", " She paints."]],
            ["Eve", ["Eve sings.", " She was born in Chile."]],
            ["Rose", ["A flower."]],
        ],
    },
    {
        "_id": "h2",
        "question": "Are Rose and Ann both people?",
        "answer": "yes",
        "type": "comparison",
        "level": "hard",
        "supporting_facts": [["Rose", 0], ["Ann", 0], ["Moon", 0]],
        "context": [["Ann", ["Ann is Eve's niece.", " She paints."]], ["Rose", ["A singer."]]],
    },
]
MUSIQUE = [
    {
        "id": "2hop__1_2",
        "paragraphs": [
            {"idx": 0, "title": "Oslo", "paragraph_text": "Oslo lies on a fjord.", "is_supporting": True},
            {"idx": 1, "title": "Oslo", "paragraph_text": "Oslo has a port.", "is_supporting": False},
            {"idx": 2, "title": "Fjord", "paragraph_text": "A fjord is an inlet.", "is_supporting": True},
        ],
        "question": "What is the water at Norway's capital?",
        "answer": "inlet",
        "answer_aliases": ["an inlet", "inlet"],
        "answerable": True,
    },
    {
        "id": "3hop1__1_2_3",
        "paragraphs": [
            {"idx": 0, "title": "Oslo", "paragraph_text": "Oslo lies on a fjord.", "is_supporting": True},
        ],
        "question": "Who cannot be known?",
        "answer": "nobody",
        "answer_aliases": [],
        "answerable": False,
    },
]
TWIN = MUSIQUE[0] | {"paragraphs": MUSIQUE[0]["paragraphs"][:2], "answerable": False}  # type: ignore[index]
ARTICLES = [
    {"title": "Shares rise", "body": "Shares rose on Monday.", "url": "example.org/a", "source": "Daily"},
    {"title": "Shares fall", "body": "Shares fell on Tuesday.", "url": "example.org/b", "source": "Daily"},
]
NEWS = [
    {
        "query": "Did shares fall after they rose?",
        "answer": "Yes",
        "question_type": "temporal_query",
        "evidence_list": [
            {"title": "Shares rise", "url": "example.org/a", "fact": "Shares rose on Monday."},
            {"title": "Shares fall", "url": "example.org/b", "fact": "Shares fell on Tuesday."},
            {"title": "Shares fall", "url": "example.org/b", "fact": "Tuesday."},
        ],
    },
    {"query": "What of gold?", "answer": "Insufficient.", "question_type": "null_query", "evidence_list": []},
]  # fmt: skip


def write_lines(path: Path, values: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(value) + "\n" for value in values))
    return path


def test_hotpotqa(tmp_path: Path) -> None:
    path = tmp_path / "hotpot_dev_distractor_v1.json"
    path.write_text(json.dumps(HOTPOT))
    dataset = load_dataset("hotpotqa", tmp_path)
    assert {document.id: document.text for document in dataset.documents} == {
        "Ann": "Ann is Eve's niece. She paints.",
        "Eve": "Eve sings. She was born in Chile.",
        "Rose": "A flower.",
        "Rose#2": "A singer.",
    }
    bridge, comparison = dataset.questions
    assert (bridge.id, bridge.type, bridge.gold, bridge.answers) == ("h1", "bridge", ("Ann", "Eve"), ("Chile",))
    assert (comparison.type, comparison.gold) == ("comparison", ("Rose#2", "Ann"))
    assert dataset.problems == ("question 'h2': its evidence 'Moon' names no document",)
    assert load_dataset("hotpotqa", path) == dataset


def test_sentences_without_spaces_of_their_own_are_set_apart(tmp_path: Path) -> None:
    """2WikiMultihopQA's own release: no sentence begins with a space."""
    sentences = ["He was a director.", "He was noted for it.", "", " Later he taught.\n", "He died in 1970."]
    (tmp_path / "dev.json").write_text(json.dumps([HOTPOT[0] | {"context": [["Ann", sentences]]}]))
    (document,) = load_dataset("hotpotqa", tmp_path).documents
    assert document.text == "He was a director. He was noted for it. Later he taught.\nHe died in 1970."


def test_hotpotqa_without_supporting_facts(tmp_path: Path) -> None:
    """The published test sets: no answer, no type, no supporting facts."""
    bare = {key: HOTPOT[0][key] for key in ("_id", "question", "context")}
    blank = HOTPOT[1] | {"answer": "", "supporting_facts": []}
    (tmp_path / "hotpot_test_fullwiki_v1.json").write_text(json.dumps([bare, blank]))
    dataset = load_dataset("hotpotqa", tmp_path)
    assert [(q.id, q.type, q.answers, q.gold) for q in dataset.questions] == [
        ("h1", "multi", (), ()),
        ("h2", "comparison", (), ()),
    ]
    assert dataset.problems == ()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"context": [["Ann"]]}, r"question 1: field 'context' has to hold a list of pairs .*, not \['Ann'\]"),
        ({"context": [["Ann", "text"]]}, "field 'context' has to hold the sentences of 'Ann' as a list of texts"),
        ({"supporting_facts": "Ann"}, "field 'supporting_facts' has to hold a list of pairs"),
        ({"_id": 7}, "field '_id' has to hold a text, not 7"),
    ],
)
def test_broken_hotpotqa_is_named(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    (tmp_path / "hotpot.json").write_text(json.dumps([HOTPOT[0] | changes]))
    with pytest.raises(InputError, match=message):
        load_dataset("hotpotqa", tmp_path)


def test_musique(tmp_path: Path) -> None:
    write_lines(tmp_path / "musique_ans_v1.0_dev.jsonl", MUSIQUE)
    dataset = load_dataset("musique", tmp_path)
    assert [document.id for document in dataset.documents] == ["Oslo", "Oslo#2", "Fjord"]
    answerable, unanswerable = dataset.questions
    assert (answerable.type, answerable.gold) == ("2hop", ("Oslo", "Fjord"))
    assert answerable.answers == ("inlet", "an inlet")
    assert (unanswerable.type, unanswerable.gold, unanswerable.answers) == ("null", (), ())


def test_musique_full_has_each_question_twice(tmp_path: Path) -> None:
    write_lines(tmp_path / "musique_full_v1.0_dev.jsonl", [MUSIQUE[0], TWIN])
    answerable, unanswerable = load_dataset("musique", tmp_path).questions
    assert (answerable.id, answerable.type, answerable.gold) == ("2hop__1_2", "2hop", ("Oslo", "Fjord"))
    assert (unanswerable.id, unanswerable.type) == ("2hop__1_2-unanswerable", "null")
    assert (unanswerable.gold, unanswerable.answers) == ((), ())
    write_lines(tmp_path / "musique_full_v1.0_dev.jsonl", [TWIN, MUSIQUE[0], TWIN])
    with pytest.raises(InputError, match="two questions have the id '2hop__1_2-unanswerable'"):
        load_dataset("musique", tmp_path)


def test_musique_without_its_labels(tmp_path: Path) -> None:
    """The published test sets: neither answers nor which paragraphs support."""
    paragraphs = [{"idx": 0, "title": "Oslo", "paragraph_text": "Oslo lies on a fjord."}]
    bare = {"id": "3hop1__1_2_3", "question": "Which?", "paragraphs": paragraphs}
    write_lines(tmp_path / "musique_ans_v1.0_test.jsonl", [bare])
    (question,) = load_dataset("musique", tmp_path).questions
    assert (question.type, question.gold, question.answers) == ("3hop", (), ())


def test_broken_musique_is_named(tmp_path: Path) -> None:
    broken = MUSIQUE[0] | {"paragraphs": [{"title": "Oslo", "paragraph_text": "x", "is_supporting": "yes"}]}
    path = write_lines(tmp_path / "musique.jsonl", [MUSIQUE[1], broken])
    with pytest.raises(InputError, match=r"musique\.jsonl, line 2, paragraphs 1: field 'is_supporting' has to hold"):
        load_dataset("musique", path)


def test_multihoprag(tmp_path: Path) -> None:
    (tmp_path / "corpus.json").write_text(json.dumps(ARTICLES))
    (tmp_path / "MultiHopRAG.json").write_text(json.dumps(NEWS))
    dataset = load_dataset("multihop-rag", tmp_path)
    temporal, null = dataset.questions
    assert (temporal.id, temporal.type, temporal.gold) == ("0", "temporal", ("example.org/a", "example.org/b"))
    assert (null.type, null.gold, null.answers) == ("null", (), ("Insufficient.",))
    assert dataset.documents[1].text == "Shares fell on Tuesday."
    assert dataset.documents[1].title == "Shares fall"


def test_graphrag_bench(tmp_path: Path) -> None:
    (tmp_path / "medical.json").write_text(json.dumps({"corpus_name": "Medical", "context": "Skin has layers."}))
    question = {
        "id": "Medical-1",
        "source": "Medical",
        "question": "What has skin?",
        "answer": "Layers.",
        "question_type": "Fact Retrieval",
    }
    (tmp_path / "medical_questions.json").write_text(json.dumps([question]))
    dataset = load_dataset("graphrag-bench", tmp_path)
    assert [document.text for document in dataset.documents] == ["Skin has layers."]
    (read,) = dataset.questions
    assert (read.id, read.type, read.gold, read.answers) == ("Medical-1", "fact retrieval", (), ("Layers.",))
