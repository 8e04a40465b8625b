"""Pairwise comparison of two retrievers' answers: win rates in both orders, agreement and position bias."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from qgrag.errors import InputError
from qgrag.evaluation.bootstrap import BootstrapConfig, mean_intervals
from qgrag.evaluation.datasets.records import Dataset
from qgrag.evaluation.run_folder import COMPARISONS_PATTERN, RunFolder
from qgrag.generation.pairwise import CRITERIA, Comparison
from qgrag.llm.usage import measure
from qgrag.progress import progress

Records = Sequence[Mapping[str, Any]]
ComparePairs = Callable[[Sequence[str], Sequence[str], Sequence[str]], list[Comparison]]
SWAPPED = {"1": "2", "2": "1", "tie": "tie"}


@dataclass(frozen=True, slots=True)
class WinRates:
    """What a judge thought of two retrievers' answers to the same questions, by criterion.

    Args:
        rates: share of the orders that the first retriever won, a tie counting half, averaged over questions; with
            the ends of its interval: {"mean", "low", "high"}. 0.5 means that neither is better.
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
) -> dict[str, Records]:
    """Judge `compare_with`'s answers against those of every other retriever, resumable by question.

    Returns:
        By `{compare_with}-vs-{other}`, a record a question, whose shares are those of `compare_with`.

    Raises:
        InputError: `compare_with` has no answers in this run.
    """
    if compare_with not in answers:
        raise InputError(f"there are no answers of {compare_with!r} to compare with; known are {', '.join(answers)}")
    ids = [question.id for question in dataset.questions]
    made: dict[str, Records] = {}
    for other in answers:
        if other == compare_with:
            continue
        name = f"{compare_with}-vs-{other}"
        done = len(folder.results(name, ids, COMPARISONS_PATTERN))
        with progress(f"Comparing {name}", len(ids) - done) as bar:
            for start in range(done, len(ids), batch):
                part = slice(start, start + batch)
                queries = [question.text for question in dataset.questions[part]]
                first = [record["answer"] for record in answers[compare_with][part]]
                second = [record["answer"] for record in answers[other][part]]
                with measure() as meter:
                    judged = judge(queries, first, second)
                records = [
                    {"id": id_, **asdict(comparison), "usage": meter.to_dict(query)}
                    for id_, query, comparison in zip(ids[part], queries, judged, strict=True)
                ]
                folder.append_results(name, records, COMPARISONS_PATTERN)
                bar.advance(len(records))
        made[name] = folder.results(name, ids, COMPARISONS_PATTERN)
    return made


def summarise_comparisons(records: Records, bootstrap: BootstrapConfig) -> WinRates:
    """Reduce the judgements of one pair of retrievers."""
    judged = [record for record in records if record["judged"]]
    both = [record for record in records if record["judged"] == 2]
    orders = [place for record in records for place in record["places"] if place]
    rates: dict[str, dict[str, float]] = {}
    if judged:
        values = np.array([[record["scores"][c] for c in CRITERIA] for record in judged])
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
        len(judged),
        len(both),
        sum(2 - record["judged"] for record in records),
    )


def _share(hits: Any) -> float:
    values = list(hits)
    return sum(values) / len(values)
