"""NQ, IIRC and UltraDomain in their publishers' formats, broad questions over one of them, and samples."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from qgrag.errors import InputError
from qgrag.evaluation.answers.broad_questions import BroadQuestion
from qgrag.evaluation.datasets import load_dataset
from qgrag.evaluation.datasets.records import sample_questions

TEXT = "<P> The tower was built in 1889 . </P> <Table> <Tr> height 330 m </Tr> </Table> <P> Rain . </P>"


def candidate(start: int, end: int, top: bool = True) -> dict[str, Any]:
    return {"start_token": start, "end_token": end, "top_level": top}


def annotation(long: int, short: list[tuple[int, int]], said: str = "NONE") -> dict[str, Any]:
    return {
        "long_answer": {"start_token": 0, "end_token": 9, "candidate_index": long},
        "short_answers": [{"start_token": a, "end_token": b} for a, b in short],
        "yes_no_answer": said,
    }


def nq_line(id_: int, *annotations: dict[str, Any]) -> dict[str, Any]:
    return {
        "example_id": id_,
        "question_text": f"question {id_}",
        "document_text": TEXT,
        "document_url": "https://en.wikipedia.org//w/index.php?title=Iron_Tower&oldid=1",
        "long_answer_candidates": [candidate(0, 9), candidate(9, 17), candidate(10, 15, False), candidate(17, 21)],
        "annotations": list(annotations),
    }


def write_lines(path: Path, rows: list[dict[str, Any]]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def test_nq_as_google_publishes_it(tmp_path: Path) -> None:
    rows = [
        nq_line(1, annotation(0, [(6, 7)])),
        nq_line(2, annotation(2, [], "YES")),
        nq_line(3, annotation(-1, [])),
    ]
    write_lines(tmp_path / "v1.0-simplified_nq-dev.jsonl", rows)
    dataset = load_dataset("nq", tmp_path)
    assert [d.text for d in dataset.documents] == ["The tower was built in 1889 .", "height 330 m", "Rain ."]
    assert {d.title for d in dataset.documents} == {"Iron Tower"}
    first, second, third = dataset.questions
    assert (first.id, first.answers, first.type) == ("1", ("1889",), "single")
    assert first.gold == (dataset.documents[0].id,)
    assert second.answers == ("yes",)
    assert second.gold == (dataset.documents[1].id,)
    assert (third.gold, third.type) == ((), "null")
    assert dataset.problems == ()


def test_nq_gold_is_the_long_answer_of_most_annotators(tmp_path: Path) -> None:
    table, rain, tower, none = (annotation(n, [(6, 7)] if n == 0 else []) for n in (2, 3, 0, -1))
    rows = [nq_line(1, none, rain, table, tower, table), nq_line(2, rain, tower, none), nq_line(3, none, none)]
    write_lines(tmp_path / "nq.jsonl", rows)
    dataset = load_dataset("nq", tmp_path)
    text = {d.id: d.text for d in dataset.documents}
    assert [[text[id_] for id_ in q.gold] for q in dataset.questions] == [["height 330 m"], ["Rain ."], []]
    assert [q.answers for q in dataset.questions] == [("1889",), ("1889",), ()]
    assert [q.type for q in dataset.questions] == ["single", "single", "null"]


def test_nq_names_a_candidate_that_is_not_there(tmp_path: Path) -> None:
    write_lines(tmp_path / "nq.jsonl", [nq_line(1, annotation(9, []))])
    with pytest.raises(InputError, match="candidate_index"):
        load_dataset("nq", tmp_path)


def test_nq_with_passages(tmp_path: Path) -> None:
    def context(title: str, text: str) -> dict[str, str]:
        return {"title": title, "text": text}

    rows = [
        {
            "question": "who built it",
            "answers": ["Eiffel", "Gustave Eiffel"],
            "positive_ctxs": [context("Tower", "Eiffel built it."), context("Eiffel", "He built a tower.")],
            "negative_ctxs": [],
            "hard_negative_ctxs": [context("Bridge", "Nobody built it.")],
        },
        {"question": "why", "answers": ["none"], "positive_ctxs": []},
    ]
    (tmp_path / "nq-dev.json").write_text(json.dumps(rows))
    dataset = load_dataset("nq", tmp_path)
    assert [d.id for d in dataset.documents] == ["Tower", "Eiffel", "Bridge"]
    assert [(q.id, q.gold, q.type) for q in dataset.questions] == [("0", ("Tower",), "single"), ("1", (), "null")]


def iirc_question(qid: str, answer: dict[str, Any], passages: list[str]) -> dict[str, Any]:
    context = [{"text": "x", "passage": name, "indices": [0, 1]} for name in passages]
    return {"qid": qid, "question": f"question {qid}", "context": context, "answer": answer}


def test_iirc(tmp_path: Path) -> None:
    questions = [
        iirc_question(
            "a", {"type": "span", "answer_spans": [{"text": "1874"}, {"text": "Graz"}]}, ["main", "Mountain"]
        ),
        iirc_question("b", {"type": "value", "answer_value": "12", "answer_unit": "years"}, ["Mountain"]),
        iirc_question("c", {"type": "binary", "answer_value": "yes"}, ["main"]),
        iirc_question("d", {"type": "none"}, []),
        iirc_question("e", {"type": "span", "answer_spans": [{"text": "z"}]}, ["Lost"]),
    ]
    links = [{"target": "Mountain", "indices": [0, 3]}, {"target": "Lost", "indices": [4, 5]}]
    passage = {"title": "Climber", "text": "She climbed it.", "links": links, "questions": questions}
    (tmp_path / "dev.json").write_text(json.dumps([passage]))
    articles = {"mountain": 'High &amp; <a href="x">steep</a>.', "unrelated": "Nothing."}
    (tmp_path / "context_articles.json").write_text(json.dumps(articles))
    dataset = load_dataset("iirc", tmp_path)
    assert [(d.id, d.text) for d in dataset.documents] == [
        ("Climber", "She climbed it."),
        ("Mountain", "High & steep."),
    ]
    found = {q.id: q for q in dataset.questions}
    assert (found["a"].answers, found["a"].gold) == (("1874, Graz",), ("Climber", "Mountain"))
    assert found["b"].answers == ("12", "12 years")
    assert (found["c"].answers, found["c"].type) == (("yes",), "binary")
    assert (found["d"].gold, found["d"].answers, found["d"].type) == ((), (), "null")
    assert found["e"].gold == ()
    assert any("'lost' names no document" in problem for problem in dataset.problems)


def test_iirc_test_set_has_no_qid(tmp_path: Path) -> None:
    binary = iirc_question("", {"type": "binary", "answer_value": "yes"}, ["main"])
    none = {"question": "question none", "answer": {"type": "none"}}
    del binary["qid"]
    passages = [
        {"pid": "p_7", "title": "A", "text": "b", "links": [], "questions": [binary, none]},
        {"title": "C", "text": "d", "links": [], "questions": [binary]},
    ]
    (tmp_path / "iirc_test.json").write_text(json.dumps(passages))
    (tmp_path / "context_articles.json").write_text("{}")
    questions = load_dataset("iirc", tmp_path).questions
    assert [(q.id, q.type, q.gold) for q in questions] == [
        ("p_7-0", "binary", ("A",)),
        ("p_7-1", "null", ()),
        ("1-0", "binary", ("C",)),
    ]


def test_iirc_needs_its_articles(tmp_path: Path) -> None:
    passage = {"title": "A", "text": "b", "links": [], "questions": [iirc_question("d", {"type": "none"}, [])]}
    (tmp_path / "dev.json").write_text(json.dumps([passage]))
    with pytest.raises(InputError, match=r"context_articles\.json"):
        load_dataset("iirc", tmp_path)


def ultradomain_line(id_: str, context: str) -> dict[str, Any]:
    return {
        "_id": id_,
        "input": f"question {id_}",
        "context": f"book {context}",
        "context_id": context,
        "answers": ["answer"],
        "label": "Mix",
        "length": 2,
    }


def test_ultradomain_and_questions_of_one_s_own(tmp_path: Path) -> None:
    write_lines(tmp_path / "mix.jsonl", [ultradomain_line(i, c) for i, c in [("1", "x"), ("2", "x"), ("3", "y")]])
    dataset = load_dataset("ultradomain", tmp_path)
    assert [d.id for d in dataset.documents] == ["x", "y"]
    assert [(q.id, q.gold, q.type) for q in dataset.questions] == [(i, (c,), "mix") for i, c in zip("123", "xxy")]
    own = tmp_path / "qfs.jsonl"
    write_lines(own, [BroadQuestion("qfs-0-0-0", "a reader", "to read", "What are the themes?").to_dict()])
    broad = load_dataset("ultradomain", tmp_path, own)
    assert [d.id for d in broad.documents] == ["x", "y"]
    assert {q.type for q in broad.questions} == {"qfs"}


def test_samples_are_drawn_by_seed_and_keep_the_order() -> None:
    demo = load_dataset("demo")
    drawn = sample_questions(demo, 5, seed=3)
    assert drawn == sample_questions(demo, 5, seed=3)
    assert drawn != sample_questions(demo, 5, seed=4)
    places = [demo.questions.index(q) for q in drawn.questions]
    assert places == sorted(places)
    assert drawn.documents == demo.documents
    assert sample_questions(demo, 2, "first").questions == demo.questions[:2]
    assert Counter(q.type for q in sample_questions(demo, 3, per_type=True).questions) == {"single": 3, "multi": 3}
    with pytest.raises(InputError, match="at least 1"):
        sample_questions(demo, 0)
