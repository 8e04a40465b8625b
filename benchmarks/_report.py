"""Rows of a benchmark as a table, as JSON and as a picture of how cost grows."""

import json
import math
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from _timing import Result

Extra = dict[str, Any]


@dataclass
class Row:
    """One contender in one case, and the command and setting of OMP_WAIT_POLICY it ran under."""

    case: str
    graph: str
    nodes: int
    batch: int
    contender: str
    milliseconds: float
    cpu_milliseconds: float
    per_second: float
    ours_is_faster_by: float | None
    range: tuple[float, float] | None
    peak_mb: float
    note: str
    agreement: Any = None
    of_limit: float | None = None
    extra: Extra = field(default_factory=dict)
    command: str = ""
    omp_wait_policy: str = ""


def rows_of(
    case: str, graph: str, nodes: int, batch: int, results: list[Result], extra: Extra, of_limit: float | None
) -> list[Row]:
    """The rows of a race; what was counted stays with ours."""
    agreement = extra.get("agreement", {})
    rows = []
    for place, result in enumerate(results):
        rows.append(
            Row(
                case,
                graph,
                nodes,
                batch,
                result.name,
                result.seconds * 1e3,
                result.cpu_seconds * 1e3,
                result.per_second,
                result.speedup,
                result.speedup_range,
                result.peak_mb,
                result.note,
                agreement.get(result.name),
                of_limit if place == 0 else None,
                {key: value for key, value in extra.items() if key != "agreement"} if place == 0 else {},
            )
        )
    named = {result.name for result in results}
    rows[0].extra |= {key: value for key, value in agreement.items() if key not in named}
    return rows


def table(rows: list[Row]) -> str:
    """Markdown, one line a contender."""
    lines = [
        "| case | graph | batch | contender | ms each | CPU ms each | each/s | ours faster by [range] | peak MiB "
        "| of limit | agreement |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        ratio = "1"
        if row.ours_is_faster_by is not None and row.range is not None:
            ratio = f"{figure(row.ours_is_faster_by)} [{figure(row.range[0])}..{figure(row.range[1])}]"
        limit = "" if row.of_limit is None else f"{row.of_limit:.0%}"
        agreement = row.agreement if row.agreement is not None else row.extra or ""
        shown = row.contender + (f" ({row.note})" if row.note else "")
        lines.append(
            f"| {row.case} | {row.graph} | {row.batch} | {shown} | {figure(row.milliseconds)} | "
            f"{figure(row.cpu_milliseconds)} | "
            f"{figure(row.per_second)} | {ratio} | {row.peak_mb:.0f} | {limit} | {short(agreement)} |"
        )
    return "\n".join(lines)


def figure(value: float) -> str:
    """Three significant figures, thousands in full."""
    if value == 0 or not math.isfinite(value):
        return str(value)
    digits = max(0, 2 - math.floor(math.log10(abs(value))))
    return f"{value:,.{digits}f}"


def short(value: Any) -> str:
    """Agreement in a cell."""
    if isinstance(value, dict):
        return ", ".join(f"{key} {short(item)}" for key, item in value.items())
    if isinstance(value, bool):
        return "yes" if value else "NO"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def slopes(rows: list[Row]) -> dict[str, float]:
    """Slope of log time over log nodes for each contender that ran on two sizes or more, at its largest batch."""
    found = {}
    for name, points in series(rows).items():
        if len(points) > 1:
            (n0, t0), (n1, t1) = points[0], points[-1]
            found[name] = math.log(t1 / t0) / math.log(n1 / n0)
    return found


def series(rows: list[Row]) -> dict[str, list[tuple[int, float]]]:
    """(nodes, milliseconds each) of each case and contender on synthetic data, at the largest batch."""
    synthetic = [row for row in rows if not row.graph.startswith("2wiki")]
    largest = {row.case: max(other.batch for other in synthetic if other.case == row.case) for row in synthetic}
    found: dict[str, list[tuple[int, float]]] = {}
    for row in synthetic:
        if row.batch == largest[row.case]:
            found.setdefault(f"{row.case}: {row.contender}", []).append((row.nodes, row.milliseconds))
    return {name: sorted(points) for name, points in found.items()}


def plot(rows: list[Row], path: Path) -> None:
    """Time of one answer over graph size, both logarithmic, one panel a case."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    lines = {name: points for name, points in series(rows).items() if len(points) > 1}
    cases = list(dict.fromkeys(name.split(": ")[0] for name in lines if ": ours" in name))
    if not cases:
        return
    columns = min(3, len(cases))
    figure, axes = pyplot.subplots(
        math.ceil(len(cases) / columns),
        columns,
        figsize=(4.2 * columns, 3.4 * math.ceil(len(cases) / columns)),
        squeeze=False,
    )
    for axis, case in zip(axes.flat, cases, strict=False):
        for name, points in lines.items():
            if name.split(": ")[0] == case:
                label = name.split(": ", 1)[1]
                axis.plot(*zip(*points, strict=True), marker="o", lw=2 if label.startswith("ours") else 1, label=label)
        axis.set(xscale="log", yscale="log", title=case, xlabel="nodes", ylabel="ms an answer")
        axis.legend(fontsize=6)
        axis.grid(alpha=0.3)
    for axis in list(axes.flat)[len(cases) :]:
        axis.set_visible(False)
    figure.tight_layout()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=130)
    pyplot.close(figure)


def save(folder: Path, machine: Extra, rows: list[Row]) -> None:
    """kernels.json, kernels.md and kernels-growth.png, whole after every case."""
    folder.mkdir(parents=True, exist_ok=True)
    held = {"machine": machine, "slopes": slopes(rows), "rows": [asdict(row) for row in rows]}
    (folder / "kernels.json").write_text(json.dumps(held, indent=1) + "\n", encoding="utf-8")
    (folder / "kernels.md").write_text(table(rows) + "\n", encoding="utf-8")
    plot(rows, folder / "kernels-growth.png")


def load(folder: Path) -> list[Row]:
    """The rows of an earlier run, none where there was none."""
    path = folder / "kernels.json"
    if not path.exists():
        return []
    return [Row(**row) for row in json.loads(path.read_text(encoding="utf-8"))["rows"]]


def replaced(rows: list[Row], found: list[Row]) -> list[Row]:
    """``rows`` and ``found``, which takes the place of rows of the same case, graph and batch."""
    new = {(row.case, row.graph, row.batch, row.contender) for row in found}
    return [row for row in rows if (row.case, row.graph, row.batch, row.contender) not in new] + found
