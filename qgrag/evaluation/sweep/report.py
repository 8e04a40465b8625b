"""The figures of a sweep as a table for the terminal."""

from collections.abc import Sequence

from rich.box import SIMPLE_HEAD
from rich.table import Table

from qgrag.evaluation.sweep.rows import Row


def sweep_table(rows: Sequence[Row], metric: str) -> Table:
    """One row per point, one column per group: the mean and its difference from the base, each with its interval."""
    first = rows[0]
    table = Table(
        title=f"{first['sweep']}: {metric}",
        title_justify="left",
        caption="below: difference from the base of the line, paired by question, with its interval",
        caption_justify="left",
        box=SIMPLE_HEAD,
        collapse_padding=True,
        pad_edge=False,
    )
    groups = list(dict.fromkeys(row["group"] for row in rows))
    for column in (first["x"], *([first["series"]] if first["series"] else []), *groups):
        table.add_column(column.rpartition(".")[2], justify="right")
    points: dict[tuple[str, ...], dict[str, str]] = {}
    for row in rows:
        names = (str(row["value"]), *([str(row["series_value"])] if first["series"] else []))
        points.setdefault(names, {})[row["group"]] = "\n".join(cell_lines(row, metric))
    for names, cells in points.items():
        table.add_row(*names, *(cells[group] for group in groups))
    return table


def cell_lines(row: Row, metric: str) -> tuple[str, str]:
    """`0.712 (0.66-0.76)` and `+0.021 (-0.01,+0.05)`, or `base`."""
    mean = f"{row[metric]:.3f} ({row[f'{metric}_low']:.2f}-{row[f'{metric}_high']:.2f})"
    if row["base"]:
        return mean, "base"
    difference, low, high = (row[f"{metric}_difference{end}"] for end in ("", "_low", "_high"))
    return mean, f"{difference:+.3f} ({low:+.2f},{high:+.2f})"
