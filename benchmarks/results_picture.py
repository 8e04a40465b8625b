"""Draw docs/img/results.png, the picture of docs/results.md, from the tables under docs/experiments.

python benchmarks/results_picture.py
"""

import re
from dataclasses import dataclass
from pathlib import Path

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

DOCS = Path(__file__).resolve().parent.parent / "docs"
PANELS = [
    ("2wikimultihopqa", "all-evidence@8", "2WikiMultihopQA\nall-evidence@8, 50 questions"),
    ("lihuaworld", "multi all-evidence@5", "LiHua-World, multi-hop\nall-evidence@5, 24 questions"),
    ("lihuaworld", "single recall@5", "LiHua-World, single-hop\nrecall@5, 251 questions"),
    ("squad", "recall@1", "XQuAD, English\nrecall@1, 894 questions"),
]
BASELINES = ["naive", "bm25", "hybrid", "d2q", "d2q--", "kg"]
METHODS = ["qcg", "dual", "fg", "qmkgf", "ensemble"]
# Okabe and Ito's blue and vermilion: told apart in all common forms of colour blindness, and by the markers too.
STYLES = {"baseline": ("#D55E00", "s"), "method": ("#0072B2", "o")}
FIGURE_WITH_INTERVAL = re.compile(r"([\d.]+) \(([\d.]+)-([\d.]+)\)")


@dataclass(frozen=True)
class Estimate:
    """A mean with the ends of its 95% interval."""

    mean: float
    low: float
    high: float


def read_column(page: str, column: str) -> dict[str, Estimate]:
    """Estimates by retriever, from the first table of `docs/experiments/PAGE.md` that has the column.

    Raises:
        ValueError: no table of the page has the column.
    """
    header: list[str] = []
    found: dict[str, Estimate] = {}
    for line in (DOCS / "experiments" / f"{page}.md").read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")] if line.startswith("|") else []
        if not cells:
            if found:
                return found
            header = []
        elif not header:
            header = cells
        elif column in header and (figure := FIGURE_WITH_INTERVAL.fullmatch(cells[header.index(column)])):
            found[cells[0].strip("`")] = Estimate(*map(float, figure.groups()))
    if not found:
        raise ValueError(f"docs/experiments/{page}.md has no table with the column {column!r}")
    return found


def draw(path: Path) -> None:
    """Write the PNG: one panel per data set and metric, one row per retriever."""
    figure = Figure(figsize=(12, 4.8), dpi=120, layout="constrained")
    FigureCanvasAgg(figure)
    rows = [*BASELINES, *METHODS]
    axes = figure.subplots(1, len(PANELS), sharey=True)
    for ax, (page, column, title) in zip(axes, PANELS):
        estimates = read_column(page, column)
        for kind, names in (("baseline", BASELINES), ("method", METHODS)):
            colour, marker = STYLES[kind]
            values = [estimates[name] for name in names]
            ax.errorbar(
                [value.mean for value in values],
                [rows.index(name) for name in names],
                xerr=[[value.mean - value.low for value in values], [value.high - value.mean for value in values]],
                fmt=marker,
                color=colour,
                markersize=7,
                linewidth=1.6,
                label="baseline" if kind == "baseline" else "method of a paper, or their ensemble",
            )
        ax.axhline(len(BASELINES) - 0.5, color="#888888", linewidth=0.8)
        ax.set_title(title, loc="left", fontsize=12)
        ax.set_xlim(0, 1.03)
        ax.tick_params(labelsize=11)
        ax.grid(axis="x", color="#dddddd", linewidth=0.8)
        ax.spines[["top", "right"]].set_visible(False)
    axes[0].set_yticks(range(len(rows)), rows, fontsize=12)
    axes[0].invert_yaxis()
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=2, fontsize=12, frameon=False)
    figure.savefig(path, format="png")


if __name__ == "__main__":
    draw(DOCS / "img" / "results.png")
