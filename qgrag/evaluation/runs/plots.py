"""Recall against the number of hits, one panel a group."""

from collections.abc import Sequence
from itertools import cycle, product
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from qgrag.evaluation.runs.summary import Summary
from qgrag.evaluation.whole_file import whole_file

# Okabe and Ito's palette, told apart in all common forms of colour blindness, without its yellow, which is
# too light for lines on white.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000", "#888888")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
LABEL_GAP = 0.055


def plot_recall(summary: Summary, path: Path) -> None:
    """Write a PNG of recall@k by k for each retriever, labelled at the end of its line.

    Args:
        summary: of a run with at least one measured question.
        path: PNG file, written whole or not at all.
    """
    ks = summary.settings["ks"]
    shown = summary.shown_groups()
    figure = Figure(figsize=(4.6 * len(shown), 4.2), dpi=150, layout="constrained")
    FigureCanvasAgg(figure)
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


def _label_ends(ax: Axes, ends: dict[str, tuple[float, str]], k: int) -> None:
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
    """Move rising numbers as little as a sweep needs so that neighbours differ by `gap` and the top stays
    below 1.
    """
    spaced: list[float] = []
    for height in heights:
        spaced.append(max(height, spaced[-1] + gap) if spaced else height)
    ceiling = 1.0
    for i in reversed(range(len(spaced))):
        spaced[i] = min(spaced[i], ceiling)
        ceiling = spaced[i] - gap
    return spaced
