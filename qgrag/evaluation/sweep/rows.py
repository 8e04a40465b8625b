"""Figures of a sweep as rows: the means of each point, and its difference from the base on the same questions."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from qgrag.evaluation.bootstrap import BootstrapConfig, pairwise_bootstrap
from qgrag.evaluation.datasets.records import Question
from qgrag.evaluation.runs.summary import Summary, groups
from qgrag.evaluation.sweep.points import Point, Sweep
from qgrag.files import whole_file
from qgrag.progress import progress

Row = dict[str, Any]
"""The figures of one point for one group of questions.

Keys: `sweep`, `x`, `value`, `series`, `series_value`, `group`, `questions`, `base` (whether the others of its line are
compared with this point), and each metric with `METRIC_low` and `METRIC_high`. A point that is not the base also has
`METRIC_difference`, its mean minus the base's, with `METRIC_difference_low` and `METRIC_difference_high`.
"""


@dataclass(frozen=True, slots=True)
class Measured:
    """A point's figures.

    Args:
        summary: of its run.
        records: of its questions, in the data set's order.
    """

    summary: Summary
    records: Sequence[Mapping[str, Any]]


def sweep_rows(
    sweep: Sweep,
    points: Sequence[Point],
    measured: Mapping[str, Measured],
    questions: Sequence[Question],
    bootstrap: BootstrapConfig,
) -> list[Row]:
    """Rows of all points, line by line in the order of the sweep's values, their groups in alphabetical order.

    Differences are those of `pairwise_bootstrap`: all points of one line are compared on the same draws of questions.

    Args:
        sweep: what was measured.
        points: its points.
        measured: by the points' labels.
        questions: of the data set.
        bootstrap: of the differences' intervals.
    """
    rows: list[Row] = []
    lines = [[p for p in points if p.series_value == line] for line in sweep.series_values or (None,)]
    with progress(f"Comparing {sweep.x}", len(points)) as bar:
        for line in lines:
            line.sort(key=lambda point: sweep.values.index(point.value))
            differences = _differences(sweep, line, measured, questions, bootstrap)
            for point in line:
                rows += [
                    row | differences.get((point.label, row["group"]), {})
                    for row in _means(sweep, point, measured[point.label].summary)
                ]
                bar.advance()
    return rows


def write_points(rows: Sequence[Row], path: Path) -> None:
    """Write the rows as one Parquet table. `value` and `series_value` are numbers if all of them are, else texts."""
    columns = dict.fromkeys(name for row in rows for name in row)
    table = {name: [row.get(name) for row in rows] for name in columns}
    for name in ("value", "series_value"):
        table[name] = _alike(table[name])
    with whole_file(path) as aside:
        pq.write_table(pa.table(table), aside)


def _means(sweep: Sweep, point: Point, summary: Summary) -> list[Row]:
    rows = []
    for group, figures in sorted(summary.retrievers[point.label].items()):
        row: Row = {
            "sweep": sweep.name,
            "x": sweep.x,
            "value": point.value,
            "series": sweep.series,
            "series_value": point.series_value,
            "group": group,
            "questions": summary.counts[group]["measured"],
            "base": point.value == sweep.base_value,
        }
        for metric, mean in figures.items():
            low, high = summary.intervals[point.label][group][metric]
            row |= {metric: mean, f"{metric}_low": low, f"{metric}_high": high}
        rows.append(row)
    return rows


def _differences(
    sweep: Sweep,
    line: Sequence[Point],
    measured: Mapping[str, Measured],
    questions: Sequence[Question],
    bootstrap: BootstrapConfig,
) -> dict[tuple[str, str], Row]:
    """By label and group: the differences that a row has if its point is not the base."""
    base = next(point.label for point in line if point.value == sweep.base_value)
    labels = [*(point.label for point in line if point.label != base), base]
    found: dict[tuple[str, str], Row] = {}
    for group, members in groups(questions).items():
        asked = [i for i in members if questions[i].gold]
        if not asked or len(labels) < 2:
            continue
        metrics = list(measured[base].records[asked[0]]["metrics"])
        values = {
            label: np.array([[measured[label].records[i]["metrics"][name] for name in metrics] for i in asked])
            for label in labels
        }
        for (label, other), difference in pairwise_bootstrap(values, bootstrap).items():
            if other == base:
                columns = zip(metrics, *(part.tolist() for part in (difference.mean, difference.low, difference.high)))
                found[label, group] = {
                    f"{metric}_difference{end}": number
                    for metric, *numbers in columns
                    for end, number in zip(("", "_low", "_high"), numbers)
                }
    return found


def _alike(values: Sequence[Any]) -> list[Any]:
    """Numbers if all values are numbers, else texts; a missing value stays missing."""
    known = [value for value in values if value is not None]
    if all(isinstance(value, bool) for value in known):
        return list(values)
    if all(isinstance(value, int | float) and not isinstance(value, bool) for value in known):
        whole = all(isinstance(value, int) for value in known)
        return [value if value is None or whole else float(value) for value in values]
    return [None if value is None else str(value) for value in values]
