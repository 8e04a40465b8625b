"""Judgements of a run's answers, one record per question, resumable: verdicts on each, and comparisons of pairs."""

import hashlib
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Protocol

import numpy as np

from qgrag.evaluation.bootstrap import BootstrapConfig, mean_intervals
from qgrag.evaluation.datasets.records import Dataset
from qgrag.evaluation.runs.run_folder import COMPARISONS_PATTERN, VERDICTS_PATTERN, RunFolder, complete_records
from qgrag.generation.correctness import Verdict
from qgrag.generation.pairwise import CRITERIA, SWAPPED, Comparison
from qgrag.llm.usage import measure

Records = Sequence[Mapping[str, Any]]
NO_REFERENCE = "no reference"
ComparePairs = Callable[[Sequence[str], Sequence[str], Sequence[str]], list[Comparison]]


class Judge(Protocol):
    """`qgrag.generation.correctness.CorrectnessJudge`."""

    def __call__(
        self, queries: Sequence[str], references: Sequence[Sequence[str]], answers: Sequence[str]
    ) -> list[Verdict]: ...


def judge_all(name: str, dataset: Dataset, answers: Records, judge: Judge, folder: RunFolder, batch: int) -> None:
    """Write a verdict on each answer of a retriever; `correct` is None without a reference or where the judge failed.

    An answer is judged anew if the judge failed on it or if it changed since.
    """
    ids = [question.id for question in dataset.questions]

    def judged(positions: Sequence[int]) -> list[Mapping[str, Any]]:
        began = time.perf_counter()
        questions = [dataset.questions[i] for i in positions]
        asked = [i for i, question in zip(positions, questions) if question.answers]
        with measure() as meter:
            verdicts = judge(
                [dataset.questions[i].text for i in asked],
                [dataset.questions[i].answers for i in asked],
                [answers[i]["answer"] for i in asked],
            )
        by_position = dict(zip(asked, verdicts, strict=True))
        folder.append_timing("judge", time.perf_counter() - began, retriever=name, questions=len(positions))
        records: list[Mapping[str, Any]] = []
        for i, question in zip(positions, questions):
            verdict = by_position.get(i, Verdict(None, NO_REFERENCE))
            text = {"of": fingerprint(answers[i]["answer"]), "correct": verdict.correct, "reason": verdict.reason}
            records.append({"id": question.id, **text, "usage": meter.to_dict(question.text)})
        return records

    def stale(position: int, record: Mapping[str, Any]) -> bool:
        missing = record["correct"] is None and bool(dataset.questions[position].answers)
        return missing or not is_about(record, answers[position]["answer"])

    complete_records(
        folder, name, VERDICTS_PATTERN, ids, judged, stale, batch=batch, title=f"Judging answers from {name}"
    )


def fingerprint(*answers: str) -> str:
    """Of the answers that a judgement is about: 16 hexadecimal digits."""
    return hashlib.sha256("\0".join(answers).encode()).hexdigest()[:16]


def is_about(judgement: Mapping[str, Any], *answers: str) -> bool:
    """Whether a recorded judgement is about these very answers, which may have been written anew since."""
    return bool(judgement["of"] == fingerprint(*answers))


@dataclass(frozen=True, slots=True)
class WinRates:
    """What a judge thought of two retrievers' answers to the same questions, by criterion.

    Args:
        rates: share of the orders that the first retriever won, a tie counting half, averaged over the questions judged
            in both, so that a judge's liking for a place cancels out; with the ends of its interval: {"mean", "low",
            "high"}. 0.5 means that neither is better.
        agreement: share of the questions judged in both orders in which both name the same answer, or a tie.
        position_bias: of all orders judged, the share won by the answer shown first minus that won by the one shown
            second; 0 for a judge that does not mind, 1 for one that always takes the first.
        questions: with at least one usable judgement.
        both_orders: with two.
        failed_orders: requests without a usable judgement.
    """

    rates: dict[str, dict[str, float]]
    agreement: dict[str, float]
    position_bias: dict[str, float]
    questions: int
    both_orders: int
    failed_orders: int

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def compare_all(
    dataset: Dataset,
    answers: Mapping[str, Records],
    compare_with: str,
    judge: ComparePairs,
    folder: RunFolder,
    batch: int,
) -> None:
    """Judge `compare_with`'s answers against those of every other retriever, resumable by question.

    For each pair, `comparisons-A-vs-B.jsonl` gets one record per question. A is `compare_with`, and the shares are A's.
    A pair that was not judged in both orders, or whose answers changed since, is judged anew.
    """
    ids = [question.id for question in dataset.questions]
    for other in answers:
        if other == compare_with:
            continue
        name = pair_name(compare_with, other)
        pairs = [(a["answer"], b["answer"]) for a, b in zip(answers[compare_with], answers[other], strict=True)]

        def judged(positions: Sequence[int], pairs: list[tuple[str, str]] = pairs) -> list[Mapping[str, Any]]:
            queries = [dataset.questions[i].text for i in positions]
            with measure() as meter:
                comparisons = judge(queries, [pairs[i][0] for i in positions], [pairs[i][1] for i in positions])
            return [
                {"id": ids[i], "of": fingerprint(*pairs[i]), **asdict(comparison), "usage": meter.to_dict(query)}
                for i, query, comparison in zip(positions, queries, comparisons, strict=True)
            ]

        def stale(position: int, record: Mapping[str, Any], pairs: list[tuple[str, str]] = pairs) -> bool:
            return record["judged"] < 2 or not is_about(record, *pairs[position])

        complete_records(folder, name, COMPARISONS_PATTERN, ids, judged, stale, batch=batch, title=f"Comparing {name}")


def pair_name(first: str, second: str) -> str:
    """Of the comparison of two retrievers' answers: in file names and in figures."""
    return f"{first}-vs-{second}"


def summarise_comparisons(records: Records, bootstrap: BootstrapConfig) -> WinRates:
    """Reduce the judgements of one pair of retrievers."""
    both = [record for record in records if record["judged"] == 2]
    orders = [place for record in records for place in record["places"] if place]
    rates: dict[str, dict[str, float]] = {}
    if both:
        values = np.array([[record["scores"][c] for c in CRITERIA] for record in both])
        low, high = mean_intervals(values, bootstrap)
        rates = {
            c: {"mean": float(values[:, i].mean()), "low": float(low[i]), "high": float(high[i])}
            for i, c in enumerate(CRITERIA)
        }
    return WinRates(
        rates,
        {c: _share(record["places"][0][c] == SWAPPED[record["places"][1][c]] for record in both) for c in CRITERIA}
        if both
        else {},
        {c: _share(p[c] == "1" for p in orders) - _share(p[c] == "2" for p in orders) for c in CRITERIA}
        if orders
        else {},
        sum(record["judged"] > 0 for record in records),
        len(both),
        sum(2 - record["judged"] for record in records),
    )


def _share(hits: Any) -> float:
    values = list(hits)
    return sum(values) / len(values)
