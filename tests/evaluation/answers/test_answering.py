"""Answers of a run: their figures, that they continue, and comparisons in both orders."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from qgrag.errors import InputError
from qgrag.evaluation.answers.answering import AnswerRun, Measures, run_answers
from qgrag.evaluation.answers.judgements import summarise_comparisons
from qgrag.evaluation.bootstrap import BootstrapConfig
from qgrag.evaluation.datasets import Dataset
from qgrag.evaluation.runs.harness import run_evaluation
from qgrag.generation.answers import Answer, Citation
from qgrag.generation.context import reader_views
from qgrag.generation.correctness import Verdict
from qgrag.generation.pairwise import CRITERIA, Comparison
from qgrag.retrieval.evidence.items import TripleItem
from qgrag.retrieval.evidence.records import KGEvidence
from qgrag.retrieval.results import RetrievalResult

FEW_DRAWS = BootstrapConfig(resamples=100)
USAGE = {"answer": {"calls": 1, "prompt_tokens": 30, "completion_tokens": 3}}


class TopText:
    """Answers with the first hit's text, or with the first line of the graph's views."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def __call__(self, results: Sequence[RetrievalResult]) -> list[Answer]:
        self.asked += [result.query for result in results]
        return [
            Answer(result.query, result.hits[0].text, (cited(result),), usage=USAGE)
            if result.hits
            else Answer(result.query, f"from {reader_views(result.evidence)[0].lines[0]}", usage=USAGE)
            for result in results
        ]

    def without_evidence(self, queries: Sequence[str]) -> list[Answer]:
        return [Answer(query, "from memory", usage=USAGE) for query in queries]


def cited(result: RetrievalResult) -> Citation:
    hit = result.hits[0]
    return Citation(1, hit.chunk_id, hit.document_id, hit.document_ids, hit.start, hit.end)


class FirstLetterJudge:
    """Correct where the answer holds the reference; no verdict on the question that it was told to fail."""

    def __init__(self, fails: str = "") -> None:
        self.fails = fails

    def __call__(
        self, queries: Sequence[str], references: Sequence[Sequence[str]], answers: Sequence[str]
    ) -> list[Verdict]:
        return [
            Verdict(None, "lost") if query == self.fails else Verdict(any(r in answer for r in accepted), "")
            for query, accepted, answer in zip(queries, references, answers, strict=True)
        ]


class LongerWins:
    """Prefers the longer answer, or, where it is told to, whichever comes first."""

    def __init__(self, first_wins: bool = False) -> None:
        self.first_wins = first_wins

    def __call__(self, queries: Sequence[str], first: Sequence[str], second: Sequence[str]) -> list[Comparison]:
        made = []
        for a, b in zip(first, second, strict=True):
            given = "1" if self.first_wins or len(a) > len(b) else "2"
            swapped = "1" if self.first_wins or len(b) >= len(a) else "2"
            score = ((given == "1") + (swapped == "2")) / 2
            places = (dict.fromkeys(CRITERIA, given), dict.fromkeys(CRITERIA, swapped))
            made.append(Comparison(dict.fromkeys(CRITERIA, score), ("", ""), 2, places))
        return made


@pytest.fixture
def run_folder(dataset: Dataset, good: Any, bad: Any, tmp_path: Path) -> Path:
    run_evaluation(dataset, {"good": good, "bad": bad}, tmp_path, ks=(1, 2), batch=3, bootstrap=FEW_DRAWS)
    return tmp_path


@pytest.fixture
def dataset(dataset: Dataset) -> Dataset:
    """Every question but the second has a reference."""
    references = {"1": ("tex",), "3": ("nothing",), "4": ("of c",)}
    questions = tuple(replace(q, answers=references.get(q.id, ())) for q in dataset.questions)
    documents = tuple(replace(d, text=f"{d.id} {d.text}") for d in dataset.documents)
    return replace(dataset, questions=questions, documents=documents)


def answers(dataset: Dataset, out: Path, measures: Measures, writer: Any = None, **changes: Any) -> dict[str, Any]:
    run_answers(
        dataset,
        changes.pop("retrievers", ["good", "bad"]),
        out,
        writer or TopText(),
        measures,
        AnswerRun(changes.pop("batch", 2), changes.pop("config", {}), FEW_DRAWS),
    )
    summary: dict[str, Any] = json.loads((out / "answers.json").read_text())
    return summary


def test_answers_are_measured_by_group(dataset: Dataset, run_folder: Path) -> None:
    summary = answers(dataset, run_folder, Measures(judge=FirstLetterJudge()))
    good = summary["retrievers"]["good"]
    assert summary["counts"]["overall"] == {
        "questions": 4,
        "measured": 3,
        "without_reference": 1,
        "not_judged": 0,
    }
    assert "multi" not in good
    assert good["single"]["judge"]["mean"] == 0.5
    assert good["null"]["judge"]["mean"] == 0
    assert good["overall"]["contains"]["mean"] == pytest.approx(1 / 3)
    low_to_high = good["overall"]["f1"]
    assert low_to_high["low"] <= low_to_high["mean"] <= low_to_high["high"]
    assert set(summary["differences"]["overall"]["good"]["bad"]["judge"]) == {"mean", "low", "high"}
    costs = summary["costs"]["bad"]
    assert costs["prompt_tokens"] == 30 + 10 / 2
    assert costs["failed"] == 0
    table = pq.read_table(run_folder / "results.parquet").to_pylist()
    assert table[0]["answer"] == "a tex"
    assert table[0]["answer_judge"] == 1.0
    assert table[1]["answer_f1"] is None


def test_a_question_that_was_not_judged_leaves_every_retriever_s_figures(dataset: Dataset, run_folder: Path) -> None:
    summary = answers(dataset, run_folder, Measures(judge=FirstLetterJudge(fails="third?")))
    assert summary["counts"]["single"] == {"questions": 2, "measured": 1, "without_reference": 0, "not_judged": 1}


def test_answers_go_on_where_they_stopped(dataset: Dataset, run_folder: Path) -> None:
    class Dies(TopText):
        def __call__(self, results: Sequence[RetrievalResult]) -> list[Answer]:
            if len(self.asked) >= 2:
                raise KeyboardInterrupt
            return super().__call__(results)

    with pytest.raises(KeyboardInterrupt):
        answers(dataset, run_folder, Measures(), Dies())
    writer = TopText()
    summary = answers(dataset, run_folder, Measures(), writer, batch=3)
    assert writer.asked[:2] == ["nobody knows?", "third?"]
    assert "first?" in writer.asked[2:]
    assert set(summary["retrievers"]) == {"good", "bad"}
    again = TopText()
    answers(dataset, run_folder, Measures(), again)
    assert again.asked == []


def test_other_settings_do_not_overwrite(dataset: Dataset, run_folder: Path) -> None:
    answers(dataset, run_folder, Measures(), config={"reader": "a"})
    with pytest.raises(InputError, match="other settings"):
        answers(dataset, run_folder, Measures(), config={"reader": "b"})


def test_answers_need_results(dataset: Dataset, run_folder: Path) -> None:
    with pytest.raises(InputError, match="evaluate its retrieval first"):
        answers(dataset, run_folder, Measures(), retrievers=["other"])


def test_the_writer_without_retrieval_answers_from_memory(
    dataset: Dataset, good: Any, bad: Any, tmp_path: Path
) -> None:
    bad.reads = "nothing"
    run_evaluation(dataset, {"bad": bad}, tmp_path, bootstrap=FEW_DRAWS)
    answers(dataset, tmp_path, Measures(), retrievers=["bad"])
    lines = (tmp_path / "answers-bad.jsonl").read_text().splitlines()
    assert {json.loads(line)["answer"] for line in lines} == {"from memory"}


def test_win_rates_in_both_orders(dataset: Dataset, run_folder: Path) -> None:
    summary = answers(dataset, run_folder, Measures(pair_judge=LongerWins(), compare_with="good"))
    rates = summary["comparisons"]["good-vs-bad"]
    assert rates["questions"] == rates["both_orders"] == 4
    assert rates["failed_orders"] == 0
    assert rates["agreement"]["overall"] == 1
    assert rates["position_bias"]["overall"] == 0
    assert rates["rates"]["overall"]["mean"] == 0


def test_a_judge_that_takes_the_first_is_seen_through() -> None:
    records = [
        {"scores": c.scores, "judged": c.judged, "places": list(c.places)}
        for c in LongerWins(first_wins=True)(["q"] * 3, ["a", "aa", ""], ["aaa", "b", "c"])
    ]
    rates = summarise_comparisons(records, FEW_DRAWS)
    assert rates.rates["overall"] == {"mean": 0.5, "low": 0.5, "high": 0.5}
    assert rates.agreement["overall"] == 0
    assert rates.position_bias["overall"] == 1


def test_orders_without_a_judgement_are_counted() -> None:
    one = {"scores": dict.fromkeys(CRITERIA, 1.0), "judged": 1, "places": [dict.fromkeys(CRITERIA, "1"), {}]}
    none: dict[str, Any] = {"scores": {}, "judged": 0, "places": [{}, {}]}
    rates = summarise_comparisons([one, none], FEW_DRAWS)
    assert (rates.questions, rates.both_orders, rates.failed_orders) == (1, 0, 3)
    assert rates.agreement == {}
    assert summarise_comparisons([none], FEW_DRAWS).rates == {}


def test_meteor_is_for_english() -> None:
    with pytest.raises(InputError, match="English"):
        Measures("zh", meteor=lambda answer, references: 1.0)


class Fails(TopText):
    """Has no answer to one question, as where an endpoint did not answer in time."""

    def __call__(self, results: Sequence[RetrievalResult]) -> list[Answer]:
        return [
            replace(answer, text="", answered=False, error="timeout") if answer.query == "third?" else answer
            for answer in super().__call__(results)
        ]


def test_a_failed_answer_scores_nothing_and_is_asked_for_again(dataset: Dataset, run_folder: Path) -> None:
    references = {**{q.id: q.answers for q in dataset.questions}, "4": ("c",)}
    dataset = replace(dataset, questions=tuple(replace(q, answers=references[q.id]) for q in dataset.questions))
    summary = answers(dataset, run_folder, Measures(judge=FirstLetterJudge()), Fails(), retrievers=["good"])
    assert summary["costs"]["good"]["failed"] == 0.25
    lines = pq.read_table(run_folder / "results.parquet").to_pylist()
    assert [row["answer_exact_match"] for row in lines if row["retriever"] == "good"][3] == 0
    writer = TopText()
    summary = answers(dataset, run_folder, Measures(judge=FirstLetterJudge()), writer, retrievers=["good"])
    assert writer.asked == ["third?"]
    assert summary["costs"]["good"]["failed"] == 0
    verdicts = [json.loads(line) for line in (run_folder / "verdicts-good.jsonl").read_text().splitlines()]
    assert [verdict["id"] for verdict in verdicts] == ["1", "2", "3", "4"]
    assert verdicts[3]["correct"] is True


def test_a_verdict_that_failed_is_asked_for_again(dataset: Dataset, run_folder: Path) -> None:
    answers(dataset, run_folder, Measures(judge=FirstLetterJudge(fails="third?")))
    summary = answers(dataset, run_folder, Measures(judge=FirstLetterJudge()))
    assert summary["counts"]["overall"]["not_judged"] == 0


def test_a_judge_may_join_and_stays(dataset: Dataset, run_folder: Path) -> None:
    assert "judge" not in answers(dataset, run_folder, Measures())["retrievers"]["good"]["overall"]
    writer = TopText()
    judged = answers(dataset, run_folder, Measures(judge=FirstLetterJudge()), writer)
    assert not writer.asked
    assert judged["retrievers"]["good"]["single"]["judge"]["mean"] == 0.5
    again = answers(dataset, run_folder, Measures())
    assert again["retrievers"]["good"]["single"]["judge"]["mean"] == 0.5


def test_only_what_can_be_compared_is_begun(dataset: Dataset, run_folder: Path) -> None:
    writer = TopText()
    with pytest.raises(InputError, match="no answers of 'god' to compare with; known are good, bad"):
        answers(dataset, run_folder, Measures(pair_judge=LongerWins(), compare_with="god"), writer)
    assert not writer.asked
    assert answers(dataset, run_folder, Measures(pair_judge=LongerWins(), compare_with="good"), writer)["comparisons"]


def test_a_graph_s_reader_gets_views_and_the_others_passages(
    dataset: Dataset, good: Any, bad: Any, tmp_path: Path
) -> None:
    good.evidence = bad.evidence = KGEvidence((), (TripleItem("a", "is", "b", (), 0.5),))
    good.reads = "views"
    run_evaluation(dataset, {"good": good, "bad": bad}, tmp_path, bootstrap=FEW_DRAWS)
    answers(dataset, tmp_path, Measures())
    by_name = {
        name: [json.loads(line)["answer"] for line in (tmp_path / f"answers-{name}.jsonl").read_text().splitlines()]
        for name in ("good", "bad")
    }
    assert set(by_name["good"]) == {"from a | is | b"}
    assert not any(answer.startswith("from a") for answer in by_name["bad"])
    assert "from memory" in by_name["bad"]


def test_the_table_keeps_every_retriever_and_every_answer(
    dataset: Dataset, good: Any, bad: Any, run_folder: Path
) -> None:
    answers(dataset, run_folder, Measures(), retrievers=["good"])
    rows = pq.read_table(run_folder / "results.parquet").to_pylist()
    assert {row["retriever"] for row in rows} == {"good", "bad"}
    run_evaluation(dataset, {"good": good, "bad": bad}, run_folder, ks=(1, 2), batch=3, bootstrap=FEW_DRAWS)
    assert pq.read_table(run_folder / "results.parquet").to_pylist() == rows


def test_pairs_judged_in_one_order_are_in_no_win_rate() -> None:
    one = {"scores": dict.fromkeys(CRITERIA, 1.0), "judged": 1, "places": [dict.fromkeys(CRITERIA, "1"), {}]}
    both = {
        "scores": dict.fromkeys(CRITERIA, 0.5), "judged": 2, "places": [dict.fromkeys(CRITERIA, "1")] * 2,
    }  # fmt: skip
    assert summarise_comparisons([one, both], FEW_DRAWS).rates["overall"]["mean"] == 0.5


def test_a_verdict_on_an_answer_that_has_changed_is_not_counted(
    dataset: Dataset, run_folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    judged = Measures(judge=FirstLetterJudge())
    answers(dataset, run_folder, judged, Fails(), retrievers=["good"])
    with caplog.at_level("WARNING"):
        later = answers(dataset, run_folder, Measures(), retrievers=["good"])
    assert "judge" not in later["retrievers"]["good"]["overall"]
    assert later["settings"]["verdicts"] is None
    answers(dataset, run_folder, judged, retrievers=["good"], config={})
    with caplog.at_level("WARNING"):
        joined = answers(dataset, run_folder, Measures())
    assert "judge" not in joined["retrievers"]["good"]["overall"]
    assert "answers of bad have none yet" in caplog.text


def test_the_summary_names_the_judge_of_the_verdicts_that_it_has(dataset: Dataset, run_folder: Path) -> None:
    run_answers(
        dataset, ["good"], run_folder, TopText(), Measures(judge=FirstLetterJudge()),
        AnswerRun(2, {}, FEW_DRAWS, {"judge": "first letter"}),
    )  # fmt: skip
    again = answers(dataset, run_folder, Measures(), retrievers=["good"])
    assert again["settings"]["verdicts"] == {"judge": "first letter"}
    with pytest.raises(InputError, match="judge is 'first letter' there and 'other' now"):
        run_answers(
            dataset, ["good"], run_folder, TopText(), Measures(judge=FirstLetterJudge()),
            AnswerRun(2, {}, FEW_DRAWS, {"judge": "other"}),
        )  # fmt: skip


def test_what_retrieval_spent_counts_where_it_found_nothing(dataset: Dataset, run_folder: Path) -> None:
    answers(dataset, run_folder, Measures(), retrievers=["bad"])
    records = [json.loads(line) for line in (run_folder / "answers-bad.jsonl").read_text().splitlines()]
    retrieved = [json.loads(line) for line in (run_folder / "results-bad.jsonl").read_text().splitlines()]
    silent = [record for record, result in zip(records, retrieved, strict=True) if not result["hits"]]
    assert [set(record["usage"]) for record in silent] == [{"entities", "answer"}] * 2
