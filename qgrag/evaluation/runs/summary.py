"""Figures of a run: means by retriever and group, differences with their intervals, counts and timings."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from qgrag.errors import InputError
from qgrag.evaluation.bootstrap import BootstrapConfig, Difference, mean_intervals, pairwise_bootstrap
from qgrag.evaluation.datasets.records import Question
from qgrag.evaluation.metrics import metric_names

OVERALL = "overall"
TYPE_ORDER = ("single", "multi")
Records = Sequence[Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Summary:
    """What a run found. `retrievers`, `counts` and `differences` are the same each time the run is repeated.

    Args:
        settings: data set with file hashes, cut-offs, seed and configuration, as in `run.json`.
        retrievers: {RETRIEVER: {GROUP: {METRIC: mean}}}; groups are `overall` and each type with a measured
            question.
        counts: {GROUP: {"questions", "measured", "without_gold"}}; means are over the measured questions.
        intervals: {RETRIEVER: {GROUP: {METRIC: [low, high]}}}, of the means, by bootstrap.
        differences: {GROUP: {FIRST: {SECOND: {METRIC: {"mean", "low", "high"}}}}}, first minus second, by
            paired bootstrap; empty for a single retriever.
        usage: {RETRIEVER: summed `RetrievalResult.usage`}, without retrievers that report none.
        timings: {"stages": {STAGE: seconds}, "retrievers": {RETRIEVER: {"first", "questions", "retrieve", "measure"}}},
            and `answer` and `judge` where answers were written. `first` are the seconds of a run's first question, with
            the loading of models; `retrieve` those of the `questions` after it.
        problems: as in `Dataset.problems`.
    """

    settings: Mapping[str, Any]
    retrievers: Mapping[str, Mapping[str, Mapping[str, float]]]
    intervals: Mapping[str, Mapping[str, Mapping[str, Sequence[float]]]]
    counts: Mapping[str, Mapping[str, int]]
    differences: Mapping[str, Any]
    usage: Mapping[str, Any]
    timings: Mapping[str, Any]
    problems: Sequence[str]

    def to_dict(self) -> dict[str, Any]:
        """Ready for `json.dumps`."""
        return asdict(self)

    def shown_groups(self) -> list[str]:
        """Groups with figures of their own: a type that is all there is would repeat `overall`."""
        measured = [group for group, counts in self.counts.items() if counts["measured"]]
        return measured if len(measured) != 2 else measured[:1]


def summarise(
    questions: Sequence[Question],
    results: Mapping[str, Records],
    timings: Records,
    settings: Mapping[str, Any],
    problems: Sequence[str],
    bootstrap: BootstrapConfig,
) -> Summary:
    """Reduce the records of a run.

    Args:
        questions: of the data set.
        results: by retriever, one record per question in the order of `questions`, with `metrics` (None without
            gold).
        timings: records with `stage`, `seconds`, and for the work of a retriever also `retriever` and
            `questions`.
        settings: recorded with the figures; `ks` are the cut-offs.
        problems: recorded with the figures.
        bootstrap: how the intervals are drawn.
    """
    members = groups(questions)
    names = metric_names(settings["ks"])
    measured = {group: [i for i in rows if questions[i].gold] for group, rows in members.items()}
    values = {
        group: {
            retriever: np.array([[records[i]["metrics"][name] for name in names] for i in rows])
            for retriever, records in results.items()
        }
        for group, rows in measured.items()
        if rows
    }
    return Summary(
        settings=settings,
        retrievers={
            retriever: {
                group: {name: math.fsum(column) / len(column) for name, column in zip(names, systems[retriever].T)}
                for group, systems in values.items()
            }
            for retriever in results
        },
        intervals={
            retriever: {group: _intervals(systems[retriever], names, bootstrap) for group, systems in values.items()}
            for retriever in results
        },
        counts={
            group: {
                "questions": len(rows),
                "measured": len(measured[group]),
                "without_gold": len(rows) - len(measured[group]),
            }
            for group, rows in members.items()
        },
        differences=(
            {
                group: named_differences(pairwise_bootstrap(systems, bootstrap), names)
                for group, systems in values.items()
            }
            if len(results) > 1
            else {}
        ),
        usage={name: usage for name, records in results.items() if (usage := _total_usage(records))},
        timings=total_timings(timings),
        problems=list(problems),
    )


def _intervals(values: np.ndarray, names: Sequence[str], bootstrap: BootstrapConfig) -> dict[str, list[float]]:
    low, high = mean_intervals(values, bootstrap)
    return {name: [float(low[i]), float(high[i])] for i, name in enumerate(names)}


def groups(questions: Sequence[Question]) -> dict[str, list[int]]:
    """Positions of the questions of each group: all, `single`, `multi`, then other types as they appear.

    Raises:
        InputError: a type bears the name that means all questions.
    """
    members: dict[str, list[int]] = {OVERALL: list(range(len(questions)))}
    types = dict.fromkeys(question.type for question in questions)
    members.update((kind, []) for kind in (*TYPE_ORDER, *types) if kind in types)
    for position, question in enumerate(questions):
        if question.type == OVERALL:
            raise InputError(f"question {question.id!r}: its type {OVERALL!r} means all questions; name it otherwise")
        members[question.type].append(position)
    return members


def named_differences(differences: Mapping[tuple[str, str], Difference], names: Sequence[str]) -> dict[str, Any]:
    """{FIRST: {SECOND: {METRIC: {"mean", "low", "high"}}}}; `names` are the columns of the arrays."""
    nested: dict[str, Any] = {}
    for (first, second), difference in differences.items():
        columns = zip(names, difference.mean.tolist(), difference.low.tolist(), difference.high.tolist())
        nested.setdefault(first, {})[second] = {
            name: {"mean": mean, "low": low, "high": high} for name, mean, low, high in columns
        }
    return nested


def _total_usage(records: Records) -> dict[str, Any]:
    total: dict[str, Any] = {}
    for record in records:
        _add_numbers(total, record["usage"])
    return total


def _add_numbers(total: dict[str, Any], usage: Mapping[str, Any]) -> None:
    """Add the numbers at equal places of nested mappings; values that are not numbers are passed over."""
    for key, value in usage.items():
        if isinstance(value, Mapping):
            _add_numbers(total.setdefault(key, {}), value)
        elif isinstance(value, int | float):
            total[key] = total.get(key, 0) + value


def total_timings(timings: Records) -> dict[str, Any]:
    """The lines of `timings.jsonl`, summed by stage and retriever as in `Summary.timings`."""
    stages: dict[str, float] = {}
    retrievers: dict[str, dict[str, float]] = {}
    for timing in timings:
        if "retriever" in timing:
            total = retrievers.setdefault(
                timing["retriever"], {"first": 0.0, "questions": 0, "retrieve": 0.0, "measure": 0.0}
            )
            total[timing["stage"]] = total.get(timing["stage"], 0.0) + timing["seconds"]
            total["questions"] += timing["questions"] if timing["stage"] == "retrieve" else 0
        else:
            stages[timing["stage"]] = stages.get(timing["stage"], 0.0) + timing["seconds"]
    return {"stages": stages, "retrievers": retrievers}


def milliseconds_per_question(timing: Mapping[str, float]) -> float:
    """Mean time of retrieval, without a run's first question where there are others.

    Args:
        timing: a retriever's entry of `Summary.timings`.
    """
    if timing["questions"]:
        return 1000 * timing["retrieve"] / timing["questions"]
    return 1000 * timing["first"]
