"""Runs: their figures, what they write, and that they continue and never overwrite."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from filelock import FileLock

from qgrag.errors import InputError
from qgrag.evaluation.bootstrap import BootstrapConfig
from qgrag.evaluation.datasets import Dataset, Question
from qgrag.evaluation.runs.harness import run_evaluation
from qgrag.evaluation.runs.run_folder import LOCK_FILE, RunFolder
from qgrag.retrieval.results import RetrievalResult

FEW_DRAWS = BootstrapConfig(resamples=200)


def evaluate(dataset: Dataset, retrievers: dict[str, Any], out: Path, **arguments: Any) -> dict[str, Any]:
    run_evaluation(dataset, retrievers, out, **{"ks": (1, 2), "batch": 2, "bootstrap": FEW_DRAWS, **arguments})
    summary: dict[str, Any] = json.loads((out / "summary.json").read_text())
    return summary


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_figures(dataset: Dataset, good: Any, bad: Any, tmp_path: Path) -> None:
    summary = evaluate(dataset, {"good": good, "bad": bad}, tmp_path)
    figures = summary["retrievers"]["good"]
    assert list(figures) == ["overall", "single", "multi"]
    assert figures["overall"]["recall@1"] == pytest.approx((1 + 0.5 + 0) / 3)
    assert figures["overall"]["recall@2"] == 1
    assert figures["single"]["mrr@2"] == pytest.approx((1 + 0.5) / 2)
    assert figures["multi"]["all_evidence@1"] == 0
    assert figures["multi"]["all_evidence@2"] == 1
    assert summary["retrievers"]["bad"]["overall"]["recall@2"] == pytest.approx((0 + 0.5 + 0) / 3)
    assert {"recall@1", "all_evidence@2", "mrr@1", "ndcg@2", "hit@1"} <= set(figures["multi"])
    assert summary["counts"] == {
        "overall": {"questions": 4, "measured": 3, "without_gold": 1},
        "single": {"questions": 2, "measured": 2, "without_gold": 0},
        "multi": {"questions": 1, "measured": 1, "without_gold": 0},
        "null": {"questions": 1, "measured": 0, "without_gold": 1},
    }
    assert summary["problems"] == list(dataset.problems)
    assert summary["settings"]["dataset"] == {"name": "tiny", "questions": 4, "files": dict(dataset.files)}
    assert summary["usage"]["good"] == {"entities": {"calls": 4, "prompt_tokens": 40, "completion_tokens": 0}}


def test_differences(dataset: Dataset, good: Any, bad: Any, tmp_path: Path) -> None:
    summary = evaluate(dataset, {"good": good, "bad": bad}, tmp_path)
    difference = summary["differences"]["overall"]["good"]["bad"]["recall@2"]
    assert difference["mean"] == pytest.approx(1 - 0.5 / 3)
    assert 0.5 <= difference["low"] <= difference["mean"] <= difference["high"] <= 1
    assert summary["differences"]["multi"]["good"]["bad"]["all_evidence@2"] == {"mean": 1, "low": 1, "high": 1}
    assert evaluate(dataset, {"good": good}, tmp_path / "alone")["differences"] == {}


def test_the_first_question_is_asked_alone_and_the_others_in_batches(
    dataset: Dataset, good: Any, tmp_path: Path
) -> None:
    evaluate(dataset, {"good": good}, tmp_path, batch=2)
    assert good.asked == [["first?"], ["second?", "nobody knows?"], ["third?"]]


def test_results(dataset: Dataset, good: Any, tmp_path: Path) -> None:
    evaluate(dataset, {"good": good}, tmp_path)
    records = lines(tmp_path / "results-good.jsonl")
    assert [record["id"] for record in records] == ["1", "2", "3", "4"]
    first = records[0]
    assert (first["question"], first["type"], first["gold"], first["answers"]) == ("first?", "single", ["a"], ["yes"])
    assert first["metrics"]["recall@1"] == 1
    assert records[2]["metrics"] is None
    assert first["hits"][1] == {
        "chunk_id": "b-1", "document_id": "b", "document_ids": ["b"], "start": 0, "end": 5, "score": 0.5,
        "title": "", "evidence": [{"kind": "script"}],
    }  # fmt: skip


def test_table_for_notebooks(dataset: Dataset, good: Any, bad: Any, tmp_path: Path) -> None:
    summary = evaluate(dataset, {"good": good, "bad": bad}, tmp_path)
    rows = pq.read_table(tmp_path / "results.parquet").to_pylist()
    assert [(row["retriever"], row["id"]) for row in rows] == [(n, i) for n in ("good", "bad") for i in "1234"]
    assert rows[3]["documents"] == ["c", "d"]
    assert rows[2]["recall@1"] is None
    measured = [row["recall@2"] for row in rows if row["retriever"] == "bad" and row["gold"]]
    assert sum(measured) / 3 == pytest.approx(summary["retrievers"]["bad"]["overall"]["recall@2"])


def test_plot_and_timings(dataset: Dataset, good: Any, tmp_path: Path) -> None:
    summary = evaluate(dataset, {"good": good}, tmp_path, stage_seconds={"index": 2.5})
    assert (tmp_path / "recall.png").read_bytes().startswith(b"\x89PNG")
    assert summary["timings"]["stages"] == {"index": 2.5}
    timing = summary["timings"]["retrievers"]["good"]
    assert timing["questions"] == 3
    assert set(timing) == {"first", "questions", "retrieve", "measure"}


def test_two_runs_give_the_same_figures(dataset: Dataset, good: Any, bad: Any, tmp_path: Path) -> None:
    one = evaluate(dataset, {"good": good, "bad": bad}, tmp_path / "one", batch=1)
    two = evaluate(dataset, {"good": good, "bad": bad}, tmp_path / "two", batch=4)
    for summary in (one, two):
        del summary["timings"]
    assert one == two
    for name in ("results-good.jsonl", "results.parquet", "recall.png"):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()


class Failing:
    """Stands in for a run that is killed at a batch."""

    def __init__(self, retriever: Any, batch: int) -> None:
        self.retriever = retriever
        self.left = batch

    def retrieve(self, queries: Sequence[str], top_k: int) -> list[RetrievalResult]:
        if self.left == 0:
            raise KeyboardInterrupt
        self.left -= 1
        results: list[RetrievalResult] = self.retriever.retrieve(queries, top_k)
        return results


@pytest.mark.parametrize("batches", [0, 1, 3])
def test_a_killed_run_continues(dataset: Dataset, good: Any, tmp_path: Path, batches: int) -> None:
    whole = evaluate(dataset, {"good": good}, tmp_path / "whole", batch=1)
    good.asked.clear()
    with pytest.raises(KeyboardInterrupt):
        evaluate(dataset, {"good": Failing(good, batches)}, tmp_path / "killed", batch=1)
    assert not (tmp_path / "killed" / "summary.json").exists()
    continued = evaluate(dataset, {"good": good}, tmp_path / "killed", batch=1)
    assert len(good.asked) == 4
    assert continued["retrievers"] == whole["retrievers"]
    name = "results-good.jsonl"
    assert (tmp_path / "killed" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


def test_a_line_cut_off_is_asked_again(dataset: Dataset, good: Any, tmp_path: Path) -> None:
    evaluate(dataset, {"good": good}, tmp_path)
    path = tmp_path / "results-good.jsonl"
    whole = path.read_bytes()
    path.write_bytes(whole[:-20])
    good.asked.clear()
    evaluate(dataset, {"good": good}, tmp_path)
    assert good.asked == [["third?"]]
    assert path.read_bytes() == whole


def test_a_finished_run_asks_nothing(dataset: Dataset, good: Any, tmp_path: Path) -> None:
    first = evaluate(dataset, {"good": good}, tmp_path)
    good.asked.clear()
    assert evaluate(dataset, {"good": good}, tmp_path) == first
    assert good.asked == []


def test_retrievers_join_a_run(dataset: Dataset, good: Any, bad: Any, tmp_path: Path) -> None:
    evaluate(dataset, {"good": good}, tmp_path)
    good.asked.clear()
    joined = evaluate(dataset, {"bad": bad}, tmp_path)
    assert good.asked == []
    together = evaluate(dataset, {"good": good, "bad": bad}, tmp_path / "together")
    assert joined["retrievers"] == together["retrievers"]
    assert joined["differences"] == together["differences"]


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"ks": (1, 5)}, r"ks is \[1, 2\] there and \[1, 5\] now"),
        ({"seed": 7}, "seed is 0 there and 7 now"),
        ({"config": {"index": "b"}}, r"config\.index is 'a' there and 'b' now"),
        ({"retriever_configs": {"good": {"gamma": 1.5}}}, r"retrievers\.good\.gamma is 1\.0 there and 1.5 now"),
    ],
)
def test_other_settings_are_refused(
    dataset: Dataset, good: Any, tmp_path: Path, changes: dict[str, Any], named: str
) -> None:
    settings = {"config": {"index": "a"}, "retriever_configs": {"good": {"gamma": 1.0}}}
    evaluate(dataset, {"good": good}, tmp_path, **settings)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    with pytest.raises(InputError, match=named):
        evaluate(dataset, {"good": good}, tmp_path, **(settings | changes))
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_other_questions_are_refused(dataset: Dataset, good: Any, tmp_path: Path) -> None:
    evaluate(dataset, {"good": good}, tmp_path)
    files = {"questions": {"name": "q.jsonl", "sha256": "11"}}
    with pytest.raises(InputError, match=r"dataset\.files\.questions\.sha256 is '00' there and '11' now"):
        evaluate(replace(dataset, files=files), {"good": good}, tmp_path)
    renamed = (replace(dataset.questions[0], id="other"), *dataset.questions[1:])
    with pytest.raises(InputError, match="its questions are not those of this run"):
        evaluate(replace(dataset, questions=renamed), {"good": good}, tmp_path)


def test_a_folder_of_something_else_is_left_alone(dataset: Dataset, good: Any, tmp_path: Path) -> None:
    (tmp_path / "summary.json").write_text("mine")
    with pytest.raises(InputError, match=r"holds results but no run\.json"):
        evaluate(dataset, {"good": good}, tmp_path)
    assert (tmp_path / "summary.json").read_text() == "mine"
    with pytest.raises(InputError, match="is a file"):
        evaluate(dataset, {"good": good}, tmp_path / "summary.json")


def test_one_writer_at_a_time(dataset: Dataset, good: Any, tmp_path: Path) -> None:
    with FileLock(tmp_path / LOCK_FILE), pytest.raises(InputError, match="another process"):
        evaluate(dataset, {"good": good}, tmp_path)


def test_documents_of_another_corpus_are_refused(dataset: Dataset, good: Any, tmp_path: Path) -> None:
    other = replace(dataset, documents=dataset.documents[:1])
    with pytest.raises(InputError, match=r"'good' returned document 'b'.*build the index"):
        evaluate(other, {"good": good}, tmp_path)


def test_low_recall_is_said_aloud(dataset: Dataset, bad: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    bad.script = dict.fromkeys(bad.script, "")
    evaluate(dataset, {"bad": bad}, tmp_path)
    assert "bad finds 0.000 of the evidence among its first 2 hits" in caplog.text


def test_data_set_without_gold(dataset: Dataset, good: Any, bad: Any, tmp_path: Path) -> None:
    questions = tuple(replace(question, gold=()) for question in dataset.questions)
    summary = evaluate(replace(dataset, questions=questions), {"good": good, "bad": bad}, tmp_path)
    assert summary["retrievers"] == {"good": {}, "bad": {}}
    assert summary["counts"]["overall"] == {"questions": 4, "measured": 0, "without_gold": 4}
    assert len(lines(tmp_path / "results-good.jsonl")) == 4


def test_bad_arguments(dataset: Dataset, good: Any, tmp_path: Path) -> None:
    for arguments, message in [({"ks": ()}, "cut-offs"), ({"batch": 0}, "batch")]:
        with pytest.raises(InputError, match=message):
            evaluate(dataset, {"good": good}, tmp_path, **arguments)
    with pytest.raises(InputError, match="no retriever"):
        evaluate(dataset, {}, tmp_path)
    with pytest.raises(InputError, match=r"'\.\./x' names a file"):
        evaluate(dataset, {"../x": good}, tmp_path)
    overall = Question("5", "?", (), ("a",), "overall")
    with pytest.raises(InputError, match="'overall' means all questions"):
        evaluate(replace(dataset, questions=(overall,)), {"good": good}, tmp_path)
    assert not (tmp_path / "run.json").exists()


def test_retriever_that_loses_a_question(dataset: Dataset, good: Any, tmp_path: Path) -> None:
    class Losing:
        def retrieve(self, queries: Sequence[str], top_k: int) -> list[RetrievalResult]:
            results: list[RetrievalResult] = good.retrieve(queries[1:], top_k)
            return results

    with pytest.raises(InputError, match="'losing' returned 0 results for 1 questions"):
        evaluate(dataset, {"losing": Losing()}, tmp_path)


def test_broken_results_are_named(dataset: Dataset, good: Any, tmp_path: Path) -> None:
    evaluate(dataset, {"good": good}, tmp_path)
    path = tmp_path / "results-good.jsonl"
    path.write_text("{]\n")
    with pytest.raises(InputError, match=r"results-good\.jsonl, line 1, column 2: not JSON: .*delete the file"):
        RunFolder(tmp_path).results("good", ["1"])
