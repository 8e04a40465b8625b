"""From the figures of a run to the cells of a paper's table."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from qgrag.evaluation.answers.judgements import pair_name
from qgrag.evaluation.answers.summary import AnswerSummary
from qgrag.evaluation.runs.summary import OVERALL, Summary
from qgrag.reproduce.costs import IndexCosts
from qgrag.reproduce.recipe import MINUTES, TOKENS, WINS, Column, Recipe, Row, slug

PERCENT = 100.0
STAGES = ("first", "retrieve", "answer")
"""What `minutes:answers` is made of; a judge's time is not in it."""


@dataclass(frozen=True, slots=True)
class Cell:
    """A measured value in the unit of the paper's table, with its interval where one was drawn."""

    value: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class Measured:
    """The figures of one data set's run.

    Args:
        summary: of retrieval.
        answers: of answers.
        timings: seconds by retriever and stage, as `total_timings` sums them.
        indexes: costs by name of the index.
    """

    summary: Summary
    answers: AnswerSummary
    timings: Mapping[str, Mapping[str, float]]
    indexes: Mapping[str, IndexCosts]


def cell_value(column: Column, row: Row, recipe: Recipe, measured: Measured) -> Cell | None:
    """What was measured for a row and column; None where there is nothing.

    Shares are given in percent, as the papers have them.
    """
    if column.metric in WINS:
        pair = pair_name(slug(recipe.compare_with), row.slug)
        rates = measured.answers.comparisons.get(pair, {}).get("rates", {})
        criterion = column.metric.partition(":")[2]
        return _percent(rates[criterion]) if criterion in rates else None
    if column.metric in (*MINUTES, *TOKENS):
        spent = _spent(column.metric, row, measured)
        return None if spent is None else Cell(spent)
    figures = measured.answers.retrievers.get(row.slug, {}).get(column.group, {})
    if column.metric in figures:
        return _percent(figures[column.metric])
    retrieval = measured.summary.retrievers.get(row.slug, {}).get(column.group, {})
    if column.metric in retrieval:
        low, high = measured.summary.intervals[row.slug][column.group][column.metric]
        return _percent({"mean": retrieval[column.metric], "low": low, "high": high})
    return None


def mean_cell(cells: Sequence[Cell]) -> Cell:
    """The unweighted mean, without an interval; one cell stays as it is."""
    return cells[0] if len(cells) == 1 else Cell(sum(cell.value for cell in cells) / len(cells))


def _spent(metric: str, row: Row, measured: Measured) -> float | None:
    """Minutes or tokens of all questions; None if a part of them was not recorded."""
    index = measured.indexes.get(row.index)
    built = None if index is None else index.seconds if metric in MINUTES else index.tokens
    answered = _seconds(row, measured) if metric in MINUTES else _tokens(row, measured)
    wanted = {"construction": (built,), "answers": (answered,), "total": (built, answered)}
    parts = wanted[metric.partition(":")[2]]
    known = [part for part in parts if part is not None]
    if len(known) < len(parts):
        return None
    return sum(known) / 60 if metric in MINUTES else sum(known)


def _seconds(row: Row, measured: Measured) -> float | None:
    stages = measured.timings.get(row.slug)
    return None if stages is None else sum(stages.get(stage, 0.0) for stage in STAGES)


def _tokens(row: Row, measured: Measured) -> float | None:
    cost = measured.answers.costs.get(row.slug)
    if cost is None:
        return None
    return (cost["prompt_tokens"] + cost["completion_tokens"]) * measured.answers.counts[OVERALL]["questions"]


def _percent(value: Mapping[str, Any]) -> Cell:
    return Cell(PERCENT * value["mean"], PERCENT * value["low"], PERCENT * value["high"])
