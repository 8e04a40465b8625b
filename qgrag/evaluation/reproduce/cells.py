"""From the figures of a run to one cell of a paper's table."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from qgrag.errors import ConfigError
from qgrag.evaluation.answer_summary import AnswerSummary
from qgrag.evaluation.reproduce.recipe import Column, Recipe, Row
from qgrag.evaluation.summary import Summary

PERCENT = 100.0


@dataclass(frozen=True, slots=True)
class Cell:
    """A measured value in the unit of the paper's table, with its interval where one was drawn."""

    value: float
    low: float | None = None
    high: float | None = None


def cell_value(
    column: Column,
    row: Row,
    recipe: Recipe,
    slug: Callable[[str], str],
    summary: Summary,
    answers: AnswerSummary,
    index_costs: Mapping[str, Mapping[str, float]],
    seconds: Mapping[str, float],
    questions: int,
) -> Cell | None:
    """What was measured for a row and column; None where there is nothing.

    Shares are given in percent, as the papers have them.

    Args:
        column: what is wanted.
        row: of which method.
        recipe: the table.
        slug: method to its name in the run.
        summary: of retrieval.
        answers: of answers.
        index_costs: {INDEX: {"seconds", "tokens"}}.
        seconds: of retrieval and answers, by name in the run.
        questions: number of questions.

    Raises:
        ConfigError: the metric is unknown.
    """
    name = slug(row.method)
    kind, _, detail = column.metric.partition(":")
    if kind == "wins":
        rates = answers.comparisons.get(f"{slug(recipe.compare_with)}-vs-{name}", {}).get("rates", {})
        return _percent(rates[detail]) if detail in rates else None
    if kind == "minutes":
        built = index_costs.get(row.index, {"seconds": 0.0})["seconds"]
        spent = {"construction": built, "answers": seconds[name], "total": built + seconds[name]}
        return Cell(_part(spent, detail, column) / 60)
    if kind == "tokens":
        cost = answers.costs[name]
        spent = {
            "construction": index_costs.get(row.index, {"tokens": 0.0})["tokens"],
            "answers": (cost["prompt_tokens"] + cost["completion_tokens"]) * questions,
        }
        return Cell(_part(spent, detail, column))
    figures = answers.retrievers.get(name, {}).get(column.group, {})
    metric = column.metric
    if metric in figures:
        return _percent(figures[metric])
    retrieval = summary.retrievers.get(name, {}).get(column.group, {})
    if metric in retrieval:
        low, high = summary.intervals[name][column.group][metric]
        return _percent({"mean": retrieval[metric], "low": low, "high": high})
    return None


def mean_cell(cells: Sequence[Cell]) -> Cell:
    """The unweighted mean, without an interval; one cell stays as it is."""
    return cells[0] if len(cells) == 1 else Cell(sum(cell.value for cell in cells) / len(cells))


def _part(values: Mapping[str, float], detail: str, column: Column) -> float:
    if detail not in values:
        raise ConfigError(f"column metric {column.metric!r} is unknown; known are {', '.join(values)}")
    return values[detail]


def _percent(value: Mapping[str, Any]) -> Cell:
    return Cell(PERCENT * value["mean"], PERCENT * value["low"], PERCENT * value["high"])
