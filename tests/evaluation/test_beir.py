import json
import os
from pathlib import Path

import pytest

from qgrag.cli.main import main
from qgrag.errors import InputError
from qgrag.evaluation.datasets import load_dataset

SCIFACT = Path(os.environ.get("QGRAG_DATA", Path(__file__).parents[3] / "shared" / "data")) / "scifact"
DOCUMENTS = {
    "d1": "The Elbe flows through Dresden.",
    "d2": "Euler was born in Basel.",
    "d3": "Basel lies on the Rhine.",
}
QUERIES = {"q3": "Which river flows through Dresden?", "q1": "Where was Euler born?", "q2": "Is the moon a cheese?"}
HEADER = "query-id\tcorpus-id\tscore\n"


def lines(rows: list[dict[str, str]]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    corpus = [{"_id": id_, "title": f"Title {id_}", "text": text} for id_, text in DOCUMENTS.items()]
    (tmp_path / "corpus.jsonl").write_text(lines(corpus))
    (tmp_path / "queries.jsonl").write_text(lines([{"_id": id_, "text": text} for id_, text in QUERIES.items()]))
    (tmp_path / "qrels").mkdir()
    (tmp_path / "qrels" / "dev.tsv").write_text(HEADER + "q1\td2\t1\nq1\td3\t2\nq1\td1\t0\nq2\td1\t0\n")
    (tmp_path / "qrels" / "train.tsv").write_text(HEADER + "q3\td1\t1\n")
    return tmp_path


def test_a_split_has_its_queries_and_relevance_above_zero_is_gold(folder: Path) -> None:
    dataset = load_dataset("beir", folder, split="dev")
    assert [document.id for document in dataset.documents] == list(DOCUMENTS)
    assert dataset.documents[0].title == "Title d1"
    assert [(q.id, q.text, q.gold, q.type) for q in dataset.questions] == [
        ("q1", QUERIES["q1"], ("d2", "d3"), "multi"),
        ("q2", QUERIES["q2"], (), "null"),
    ]
    assert set(dataset.files) == {"documents", "questions", "queries"}
    assert [q.gold for q in load_dataset("beir", folder, split="train").questions] == [("d1",)]


def test_the_test_split_or_the_only_one_is_taken_without_a_name(folder: Path) -> None:
    with pytest.raises(InputError, match=r"found dev\.tsv, train\.tsv; name the file \(--split"):
        load_dataset("beir", folder)
    (folder / "qrels" / "test.tsv").write_text(HEADER + "q2\td2\t1\n")
    assert [q.id for q in load_dataset("beir", folder).questions] == ["q2"]


@pytest.mark.parametrize(
    ("judgements", "message"),
    [
        (HEADER + "q1\td2\n", r"dev\.tsv, line 2: expected query-id, corpus-id, score with tabs"),
        (HEADER + "q1\td2\thigh\n", r"dev\.tsv, line 2: expected"),
        (HEADER + "q9\td2\t1\n", r"query 'q9' is judged, but .*queries\.jsonl does not hold it"),
        (HEADER, r"dev\.tsv: holds no question"),
    ],
)
def test_broken_judgements_are_named(folder: Path, judgements: str, message: str) -> None:
    (folder / "qrels" / "dev.tsv").write_text(judgements)
    with pytest.raises(InputError, match=message):
        load_dataset("beir", folder, split="dev")


def test_a_split_that_is_not_there_is_told_with_those_that_are(folder: Path) -> None:
    with pytest.raises(InputError, match="the splits here are: dev, train"):
        load_dataset("beir", folder, split="tset")
    with pytest.raises(InputError, match="has no splits"):
        load_dataset("demo", split="dev")


def test_gold_that_names_no_document_is_reported(folder: Path) -> None:
    (folder / "qrels" / "dev.tsv").write_text(HEADER + "q1\tlost\t1\nq1\td2\t1\n")
    dataset = load_dataset("beir", folder, split="dev")
    assert dataset.questions[0].gold == ("d2",)
    assert "'lost' names no document" in dataset.problems[0]


def test_its_corpus_is_indexed_and_its_split_measured(folder: Path, tmp_path: Path) -> None:
    config = tmp_path / "small.yaml"
    config.write_text("query_graph: null\nknowledge_graph: null\n")
    index = tmp_path / "index"
    assert main(["index", str(folder / "corpus.jsonl"), "--out", str(index), "--config", str(config)]) == 0
    run = ["eval", "--dataset", "beir", "--data", str(folder), "--split", "dev", "--index", str(index)]
    assert main([*run, "--retrievers", "bm25", "--out", str(tmp_path / "run")]) == 0
    summary = json.loads((tmp_path / "run" / "summary.json").read_text())
    assert summary["counts"]["overall"] == {"questions": 2, "measured": 1, "without_gold": 1}
    assert summary["retrievers"]["bm25"]["overall"]["hit@2"] == 1


@pytest.mark.skipif(not SCIFACT.is_dir(), reason="SciFact is not under QGRAG_DATA")
def test_scifact_reads_whole() -> None:
    dataset = load_dataset("beir", SCIFACT, split="dev")
    assert len(dataset.documents) == 5183
    assert all(question.gold for question in dataset.questions)
    assert not dataset.problems
    assert len(load_dataset("beir", SCIFACT, split="train").questions) == 809
