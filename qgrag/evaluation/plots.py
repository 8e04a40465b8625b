"""Figures as PNG files: recall of a run, several data sets side by side, a metric along the parameters of a sweep."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import cycle, product
from pathlib import Path
from typing import TYPE_CHECKING, Any

from qgrag.evaluation.runs.sets import MEAN, SetsSummary
from qgrag.evaluation.runs.summary import Summary
from qgrag.files import whole_file

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe and Ito's palette, told apart in all common forms of colour blindness, without its yellow, which is
# too light for lines on white.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000", "#888888")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
LABEL_GAP = 0.055
Rows = Sequence[Mapping[str, Any]]


def plot_recall(summary: Summary, path: Path) -> None:
    """Write a PNG of recall@k by k for each retriever, labelled at the end of its line.

    Args:
        summary: of a run with at least one measured question.
        path: PNG file, written whole or not at all.
    """
    ks = summary.settings["ks"]
    shown = summary.shown_groups()
    figure = _figure((4.6 * len(shown), 4.2))
    axes: Sequence[Axes] = figure.subplots(1, len(shown), sharey=True, squeeze=False)[0]
    for ax, group in zip(axes, shown):
        ends = {}
        styles = zip(cycle(product(("-", "--"), COLOURS)), cycle(MARKERS))
        for (name, figures), ((line, colour), marker) in zip(summary.retrievers.items(), styles):
            recall = [figures[group][f"recall@{k}"] for k in ks]
            ax.plot(ks, recall, linestyle=line, color=colour, marker=marker, markersize=5, linewidth=1.6)
            ends[name] = (recall[-1], colour)
        _label_ends(ax, ends, ks[-1])
        ax.set_title(f"{group} ({summary.counts[group]['measured']} questions)", loc="left", fontsize=10)
        ax.set_xlabel("k (hits)")
        ax.set_xticks(ks)
        ax.set_ylim(0, 1.02)
        ax.grid(axis="y", color="#dddddd", linewidth=0.6)
        ax.spines[["top", "right"]].set_visible(False)
    axes[0].set_ylabel("recall@k")
    figure.suptitle(
        f"{summary.settings['dataset']['name']}: share of gold documents among the first k hits", fontsize=11
    )
    with whole_file(path) as aside:
        figure.savefig(aside, format="png")


def _figure(size: tuple[float, float]) -> "Figure":
    """An empty figure that needs no display; matplotlib is imported here alone, since it is slow to import."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=size, dpi=150, layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def _label_ends(ax: "Axes", ends: dict[str, tuple[float, str]], k: int) -> None:
    """Names right of their lines' ends, moved apart where they would overlap."""
    ordered = sorted(ends.items(), key=lambda item: item[1][0])
    heights = spread([height for _, (height, _) in ordered], LABEL_GAP)
    for (name, (end, colour)), height in zip(ordered, heights):
        ax.annotate(
            name,
            xy=(k, end),
            xytext=(1.04, height),
            textcoords=("axes fraction", "data"),
            color=colour,
            fontsize=9,
            va="center",
            annotation_clip=False,
            arrowprops={"arrowstyle": "-", "color": colour, "linewidth": 0.6, "alpha": 0.6},
        )


def spread(heights: Sequence[float], gap: float) -> list[float]:
    """Rising numbers, moved so that neighbours differ by at least `gap` and the largest stays below 1."""
    spaced: list[float] = []
    for height in heights:
        spaced.append(max(height, spaced[-1] + gap) if spaced else height)
    ceiling = 1.0
    for i in reversed(range(len(spaced))):
        spaced[i] = min(spaced[i], ceiling)
        ceiling = spaced[i] - gap
    return spaced


def plot_sets(summary: SetsSummary, path: Path) -> None:
    """Write a PNG with one panel per metric: data sets along the axis, one marker per retriever with its interval.

    Args:
        summary: of all sets.
        path: PNG file, written whole or not at all.
    """
    sets = [*summary.questions, MEAN]
    width = 1.6 + len(sets) * max(0.6, 0.14 * len(summary.retrievers))
    figure = _figure((width + 1.6, 3.4 * len(summary.metrics)))
    axes: Sequence[Axes] = list(figure.subplots(len(summary.metrics), 1, sharex=True, squeeze=False).flat)
    step = 0.8 / max(1, len(summary.retrievers))
    for ax, metric in zip(axes, summary.metrics):
        for number, (name, own) in enumerate(summary.retrievers.items()):
            values = [own[data_set][metric] for data_set in sets]
            x = [place + (number - (len(summary.retrievers) - 1) / 2) * step for place in range(len(sets))]
            y = [value["mean"] for value in values]
            errors = [
                [max(0.0, value["mean"] - value["low"]) for value in values],
                [max(0.0, value["high"] - value["mean"]) for value in values],
            ]
            colour, marker = COLOURS[number % len(COLOURS)], MARKERS[number % len(MARKERS)]
            ax.errorbar(
                x, y, yerr=errors, linestyle="", color=colour, marker=marker, markersize=5, elinewidth=1, label=name
            )
        ax.axvline(len(sets) - 1.5, color="#999999", linewidth=0.8)
        ax.set_ylabel(metric)
        ax.set_ylim(0, 1.02)
        ax.grid(axis="y", color="#dddddd", linewidth=0.6)
        ax.spines[["top", "right"]].set_visible(False)
    labels = [f"{name}\n({summary.questions[name]})" if name in summary.questions else name for name in sets]
    axes[-1].set_xticks(range(len(sets)), labels, fontsize=8)
    axes[0].legend(frameon=False, fontsize=8, loc="upper left", bbox_to_anchor=(1, 1))
    with whole_file(path) as aside:
        figure.savefig(aside, format="png")


def plot_sweeps(panels: Sequence[tuple[Rows, str, str]], path: Path, title: str) -> None:
    """Write a PNG with one panel per sweep; bands are the intervals.

    Args:
        panels: of each sweep its rows (of `run_sweep`), the group and the metric shown.
        path: PNG file, written whole or not at all.
        title: above all.
    """
    figure = _figure((4.4 * len(panels), 4.0))
    axes: Sequence[Axes] = figure.subplots(1, len(panels), squeeze=False)[0]
    for ax, (rows, group, metric) in zip(axes, panels, strict=True):
        _panel(ax, [row for row in rows if row["group"] == group], metric)
        ax.set_title(f"{rows[0]['sweep']} ({group})", loc="left", fontsize=10)
    figure.suptitle(title, fontsize=11)
    with whole_file(path) as aside:
        figure.savefig(aside, format="png")


def _panel(ax: "Axes", rows: Rows, metric: str) -> None:
    """One line per value of the series; error bars in place of lines where the values are names."""
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
