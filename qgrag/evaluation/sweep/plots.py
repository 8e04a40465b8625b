"""A sweep as a figure: a metric along one parameter, a line a value of the other."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import cycle
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from qgrag.evaluation.runs.plots import COLOURS, MARKERS
from qgrag.evaluation.whole_file import whole_file

Rows = Sequence[Mapping[str, Any]]


def plot_sweeps(panels: Sequence[tuple[Rows, str, str]], path: Path, title: str) -> None:
    """Write a PNG with one panel a sweep; bands are the intervals.

    Args:
        panels: of each sweep its rows (of `run_sweep`), the group and the metric shown.
        path: PNG file, written whole or not at all.
        title: above all.
    """
    figure = Figure(figsize=(4.4 * len(panels), 4.0), dpi=150, layout="constrained")
    FigureCanvasAgg(figure)
    axes: Sequence[Axes] = figure.subplots(1, len(panels), squeeze=False)[0]
    for ax, (rows, group, metric) in zip(axes, panels, strict=True):
        _panel(ax, [row for row in rows if row["group"] == group], metric)
        ax.set_title(f"{rows[0]['sweep']} ({group})", loc="left", fontsize=10)
    figure.suptitle(title, fontsize=11)
    with whole_file(path) as aside:
        figure.savefig(aside, format="png")


def _panel(ax: Axes, rows: Rows, metric: str) -> None:
    """A line for each value of the series; bars where the values are names and there is one line."""
    numeric = all(isinstance(row["value"], int | float) for row in rows)
    ticks = _distinct(row["value"] for row in rows)
    lines = _distinct(row["series_value"] for row in rows)
    for line, colour, marker in zip(lines, cycle(COLOURS), cycle(MARKERS)):
        own = [row for row in rows if row["series_value"] == line]
        x = [row["value"] if numeric else ticks.index(row["value"]) for row in own]
        y = [row[metric] for row in own]
        low, high = ([row[f"{metric}_{end}"] for row in own] for end in ("low", "high"))
        label = "" if line is None else f"{own[0]['series'].rsplit('.', 1)[-1]} {str(line).rsplit('/', 1)[-1]}"
        if numeric:
            ax.plot(x, y, color=colour, marker=marker, markersize=5, linewidth=1.6, label=label)
            ax.fill_between(x, low, high, color=colour, alpha=0.12, linewidth=0)
        else:
            errors = [[a - b for a, b in zip(y, low)], [b - a for a, b in zip(y, high)]]
            ax.errorbar(x, y, yerr=errors, color=colour, marker=marker, linestyle="", capsize=3, label=label)
    if numeric:
        ax.set_xticks(ticks)
    else:
        ax.set_xticks(range(len(ticks)), [str(tick).rsplit("/", 1)[-1] for tick in ticks], rotation=20, ha="right")
    ax.set_xlabel(rows[0]["x"])
    ax.set_ylabel(metric)
    ax.grid(axis="y", color="#dddddd", linewidth=0.6)
    ax.spines[["top", "right"]].set_visible(False)
    if len(lines) > 1:
        ax.legend(frameon=False, fontsize=8)


def _distinct(values: Iterable[Any]) -> list[Any]:
    """In order of first appearance; lists and mappings may be among them."""
    found: list[Any] = []
    for value in values:
        if value not in found:
            found.append(value)
    return found
