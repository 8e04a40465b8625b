"""Loss and metric curves of a run, from the CSV logs that it left."""

import csv
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

from qgrag.errors import InputError

Curve = tuple[list[int], list[float]]


def read_curves(out: Path) -> dict[str, Curve]:
    """Steps and values of every metric, over all parts of a run that was resumed.

    Args:
        out: folder of the run; its logs lie in `logs/version_*/metrics.csv`.

    Raises:
        InputError: there are no logs.
    """
    values: dict[str, dict[int, float]] = defaultdict(dict)
    paths = sorted((out / "logs").glob("version_*/metrics.csv"), key=lambda p: int(p.parent.name.split("_")[1]))
    if not paths:
        raise InputError(f"{out}: holds no logs/version_*/metrics.csv, so it is no training run")
    for path in paths:
        with path.open(encoding="utf-8", newline="") as file:
            for row in csv.DictReader(file):
                for name, value in row.items():
                    if value and name not in {"epoch", "step"}:
                        values[name][int(row["step"])] = float(value)
    return {name: (sorted(points), [points[step] for step in sorted(points)]) for name, points in values.items()}


def plot_curves(curves: Mapping[str, Curve], path: Path, metrics: Sequence[str]) -> None:
    """A PNG with the losses on the left and the named metrics on the right, by step."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.2), layout="constrained")
    for name in sorted(name for name in curves if name.endswith("/loss")):
        left.plot(*curves[name], label=name, marker="." if len(curves[name][0]) < 30 else "")
    for name in metrics:
        if name in curves:
            right.plot(*curves[name], label=name, marker=".")
    for axes, title in ((left, "loss"), (right, "validation")):
        axes.set_xlabel("step")
        axes.set_title(title)
        axes.grid(alpha=0.3)
        if axes.get_legend_handles_labels()[0]:
            axes.legend(fontsize=8)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=120)
    plt.close(figure)
