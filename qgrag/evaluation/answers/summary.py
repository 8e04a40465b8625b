"""Figures of the answers of a run: means with intervals, differences, costs, win rates."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from qgrag.evaluation.answers.judgements import summarise_comparisons
from qgrag.evaluation.bootstrap import BootstrapConfig, mean_intervals, pairwise_bootstrap
from qgrag.evaluation.datasets.records import Question
from qgrag.evaluation.runs.summary import groups, named_differences

Records = Sequence[Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class AnswerSummary:
    """What answers were worth. A group's figures are over its questions that have a reference answer and, where a
    judge was asked, a verdict for every retriever: all retrievers are compared on the same questions.

    Args:
        settings: `config` of the writer and `retrievers` as in `answers-run.json`, the `language` of the metrics, and
            what `verdicts` and `comparisons` were made with, None where there are none.
        retrievers: {RETRIEVER: {GROUP: {METRIC: {"mean", "low", "high"}}}}, intervals by bootstrap.
        differences: {GROUP: {FIRST: {SECOND: {METRIC: {"mean", "low", "high"}}}}}, first minus second, paired.
        counts: {GROUP: {"questions", "measured", "without_reference", "not_judged"}}.
        costs: {RETRIEVER: {"prompt_tokens", "completion_tokens", "calls", "unanswered", "failed", "truncated"}}, the
            average per question. Tokens are those of the retrieval steps and the answer together. The judge's tokens
            and what a cache answered are not counted.
        comparisons: {"A-vs-B": `WinRates.to_dict()`}.
    """

    settings: Mapping[str, Any]
    retrievers: Mapping[str, Mapping[str, Mapping[str, Mapping[str, float]]]]
    differences: Mapping[str, Any]
    counts: Mapping[str, Mapping[str, int]]
    costs: Mapping[str, Mapping[str, float]]
    comparisons: Mapping[str, Any]

    def to_dict(self) -> dict[str, Any]:
        """Ready for `json.dumps`."""
        return asdict(self)


def summarise_answers(
    questions: Sequence[Question],
    answers: Mapping[str, Records],
    comparisons: Mapping[str, Records],
    settings: Mapping[str, Any],
    bootstrap: BootstrapConfig,
) -> AnswerSummary:
    """Reduce the records of `answers-RETRIEVER.jsonl` and `comparisons-A-vs-B.jsonl`."""
    retrievers: dict[str, dict[str, Any]] = {name: {} for name in answers}
    differences: dict[str, Any] = {}
    counts: dict[str, dict[str, int]] = {}
    for group, rows in groups(questions).items():
        referenced = [i for i in rows if questions[i].answers]
        measured = [i for i in referenced if all(_complete(records[i]) for records in answers.values())]
        counts[group] = {
            "questions": len(rows),
            "measured": len(measured),
            "without_reference": len(rows) - len(referenced),
            "not_judged": len(referenced) - len(measured),
        }
        if not measured or not answers:
            continue
        names = list(next(iter(answers.values()))[measured[0]]["metrics"])
        values = {
            name: np.array([[records[i]["metrics"][metric] for metric in names] for i in measured])
            for name, records in answers.items()
        }
        for name, system in values.items():
            low, high = mean_intervals(system, bootstrap)
            means = system.mean(axis=0)
            retrievers[name][group] = {
                metric: {"mean": float(means[i]), "low": float(low[i]), "high": float(high[i])}
                for i, metric in enumerate(names)
            }
        if len(values) > 1:
            differences[group] = named_differences(pairwise_bootstrap(values, bootstrap), names)
    return AnswerSummary(
        settings,
        retrievers,
        differences,
        counts,
        {name: _costs(records) for name, records in answers.items()},
        {name: summarise_comparisons(records, bootstrap).to_dict() for name, records in comparisons.items()},
    )


def _complete(record: Mapping[str, Any]) -> bool:
    return record["metrics"] is not None and None not in record["metrics"].values()


def _costs(records: Records) -> dict[str, float]:
    steps = [step for record in records for step in usage_steps(record["usage"])]
    totals = {key: sum(step[key] for step in steps) for key in ("prompt_tokens", "completion_tokens", "calls")}
    totals["unanswered"] = sum(not record["answered"] and not record["error"] for record in records)
    totals["failed"] = sum(bool(record["error"]) for record in records)
    totals["truncated"] = sum(record["truncated"] for record in records)
    return {key: value / len(records) for key, value in totals.items()}


def usage_steps(usage: Mapping[str, Any]) -> list[Mapping[str, float]]:
    """The steps of a usage record, those of an ensemble's members included."""
    steps: list[Mapping[str, float]] = []
    for value in usage.values():
        if isinstance(value, Mapping):
            steps += [value] if "calls" in value else usage_steps(value)
    return steps
