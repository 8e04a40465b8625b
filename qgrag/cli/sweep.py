"""`qgrag sweep`: a retriever over ranges of its parameters, with plots."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from jsonargparse import ArgumentParser
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from qgrag.cli.eval import named_dataset
from qgrag.cli.parsing import command_parser
from qgrag.config import from_plain, load_yaml
from qgrag.errors import ConfigError
from qgrag.evaluation.bootstrap import BootstrapConfig
from qgrag.evaluation.datasets import DATASETS
from qgrag.evaluation.metrics import DEFAULT_KS
from qgrag.evaluation.sweep.plots import plot_sweeps
from qgrag.evaluation.sweep.points import Sweep, with_device
from qgrag.evaluation.sweep.rows import Row
from qgrag.evaluation.sweep.sweeps import run_sweep

EXAMPLES = """Measure one retriever over ranges of its parameters, as in the panels of QCG-RAG's figures 3 to 6.
Each value is compared with the sweep's base, its first value or the one that base names, on the same questions. A sweep
that was stopped goes on; what was measured is not measured again. OUT gets a PNG, and points.parquet a sweep.

  qgrag sweep --config configs/sweep/qcg-figure5.yaml --dataset lihuaworld --data DATA/lihuaworld --out runs/figure5
  qgrag sweep --config configs/sweep/demo.yaml --dataset demo --out runs/sweep

A configuration is {title, metric, group, sweeps: [...]}, a sweep {name, x, values, series, series_values, retriever,
index, base}; x and series are fields of the retriever's configuration or index.FIELD.
"""


def make_parser() -> ArgumentParser:
    parser = command_parser("sweep", EXAMPLES)
    parser.add_argument("--config", type=str, required=True, help="YAML file of the sweeps")
    parser.add_argument("--dataset", choices=DATASETS, required=True, help="format of the data")
    parser.add_argument("--data", type=str | None, default=None, help="folder of the publisher's files")
    parser.add_argument("--questions", type=str | None, default=None, help="another question file of the same format")
    parser.add_argument("--limit", type=int | None, default=None, help="so many questions only, drawn by --seed")
    parser.add_argument("--seed", type=int, default=0, help="of the bootstrap intervals and of --limit")
    parser.add_argument("--out", type=str, required=True, help="folder of the sweep")
    parser.add_argument("--device", type=str, default="auto", help="auto, cpu, cuda, cuda:1, ...")
    return parser


def run(arguments: Sequence[str]) -> int:
    args = make_parser().parse_args(list(arguments))
    console = Console()
    values = load_yaml(Path(args.config))
    sweeps = [with_device(sweep, args.device) for sweep in named_sweeps(values, args.config)]
    metric, group = str(values.get("metric", "recall@5")), str(values.get("group", "overall"))
    dataset, _ = named_dataset(args, console)
    out = Path(args.out)
    panels = []
    for sweep in sweeps:
        rows = run_sweep(
            sweep,
            dataset,
            out / sweep.name,
            ks=DEFAULT_KS,
            indexes=out / "indexes",
            bootstrap=BootstrapConfig(seed=args.seed),
            say=lambda text: console.print(text, style="dim", highlight=False),
        )
        console.print(sweep_table(rows, metric))
        if not any(row["group"] == group and metric in row for row in rows):
            raise ConfigError(f"{args.config}: nothing was measured as {metric!r} on questions of type {group!r}")
        panels.append((rows, group, metric))
    plot_sweeps(panels, out / "sweep.png", str(values.get("title", dataset.name)))
    console.print(f"written to {out}: sweep.png, and a folder a sweep with points.parquet", highlight=False)
    return 0


def named_sweeps(values: dict[str, Any], where: str) -> list[Sweep]:
    """The sweeps of a configuration.

    Raises:
        ConfigError: it has none, or one of them is not valid.
    """
    unknown = sorted(set(values) - {"title", "metric", "group", "sweeps"})
    if unknown:
        raise ConfigError(f"{where}: key {unknown[0]!r} is unknown; known are title, metric, group, sweeps")
    if not values.get("sweeps"):
        raise ConfigError(f"{where}: names no sweeps")
    return [from_plain(Sweep, sweep, where=f"{where}, sweep {n}") for n, sweep in enumerate(values["sweeps"], start=1)]


def sweep_table(rows: Sequence[Row], metric: str) -> Table:
    """A row a point, a column a group: the mean with its interval, and the difference from the base with its own."""
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
