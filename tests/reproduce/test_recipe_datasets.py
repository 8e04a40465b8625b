"""The questions of a recipe and the corpus that goes with them."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from qgrag.errors import ConfigError
from qgrag.reproduce.datasets import drawn_dataset
from qgrag.reproduce.recipe import (
    DataSpec,
    load_recipe,
)

HOTPOT = [
    {
        "_id": f"q{n}",
        "question": f"Which town is number {n}?",
        "answer": f"Town {n}",
        "type": "bridge",
        "supporting_facts": [[f"Town {n}", 0]],
        "context": [[f"Town {n}", [f"Town {n} is number {n}."]], [f"Hill {n}", ["A hill."]], ["Sea", ["A sea."]]],
    }
    for n in range(20)
]


@pytest.fixture
def hotpot(tmp_path: Path) -> Path:
    (tmp_path / "hotpotqa").mkdir()
    (tmp_path / "hotpotqa" / "hotpot_dev.json").write_text(json.dumps(HOTPOT))
    return tmp_path


def test_the_corpus_is_the_passages_of_the_questions_taken(hotpot: Path) -> None:
    spec = DataSpec("hotpotqa", "hotpotqa", sample=3)
    whole = drawn_dataset(spec, hotpot)
    assert len(whole.documents) == 41
    drawn = drawn_dataset(replace(spec, pool="sampled"), hotpot)
    assert [(q.id, q.text) for q in drawn.questions] == [(q.id, q.text) for q in whole.questions]
    numbers = [question.id.removeprefix("q") for question in drawn.questions]
    assert {d.title for d in drawn.documents} == {f"{what} {n}" for n in numbers for what in ("Town", "Hill")} | {"Sea"}
    assert all(question.gold == (f"Town {question.id[1:]}",) for question in drawn.questions)
    assert len(drawn_dataset(replace(spec, pool="sampled"), hotpot, limit=1).documents) == 3
    other = drawn_dataset(replace(spec, pool="sampled", seed=1), hotpot)
    assert other.files != drawn.files


def test_questions_without_ids_keep_their_numbers_in_the_whole_file(tmp_path: Path) -> None:
    entries = [
        {"question": f"q{n}", "answers": [str(n)], "positive_ctxs": [{"title": f"T{n}", "text": f"Text {n}."}]}
        for n in range(9)
    ]
    (tmp_path / "nq").mkdir()
    (tmp_path / "nq" / "nq-dev.json").write_text(json.dumps(entries))
    drawn = drawn_dataset(DataSpec("nq", "nq", sample=2, pool="sampled"), tmp_path)
    assert [question.text for question in drawn.questions] == [f"q{question.id}" for question in drawn.questions]
    assert len(drawn.documents) == 2


def test_a_corpus_of_one_text_has_every_passage_and_no_gold(hotpot: Path) -> None:
    spec = DataSpec("hotpotqa", "hotpotqa", sample=2, pool="sampled", one_text=True)
    drawn = drawn_dataset(spec, hotpot)
    (document,) = drawn.documents
    assert document.text.split("\n\n")[1:3] == [f"Hill {drawn.questions[0].id[1:]}\nA hill.", "Sea\nA sea."]
    assert not any(question.gold for question in drawn.questions)
    assert all(question.answers for question in drawn.questions)


def test_a_format_without_passages_of_each_question_has_no_pool_of_those(tmp_path: Path) -> None:
    (tmp_path / "squad").mkdir()
    answered = {"id": "1", "question": "Which town?", "answers": [{"text": "Graz", "answer_start": 0}]}
    paragraph = {"context": "Graz lies on the Mur.", "qas": [answered]}
    content = {"version": "1.1", "data": [{"title": "Graz", "paragraphs": [paragraph]}]}
    (tmp_path / "squad" / "dev.json").write_text(json.dumps(content))
    assert len(drawn_dataset(DataSpec("squad", "squad"), tmp_path).questions) == 1
    with pytest.raises(ConfigError, match="format 'squad' does not give passages with each question"):
        drawn_dataset(DataSpec("squad", "squad", pool="sampled"), tmp_path)


@pytest.mark.parametrize("name", ["dual-table1", "dual-table2", "dual-table3"])
def test_the_tables_of_dual_are_over_the_drawn_passages_alone(name: str) -> None:
    specs = load_recipe(name).datasets.values()
    assert {(spec.sample, spec.pool, spec.one_text) for spec in specs} == {(1000, "sampled", True)}
