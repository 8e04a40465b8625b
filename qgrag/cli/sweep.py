"""`qgrag sweep`: a retriever over ranges of its parameters, with plots."""

from collections.abc import Sequence
from pathlib import Path

from jsonargparse import ArgumentParser
from rich.console import Console

from qgrag.cli.dataset_arguments import add_dataset_arguments, data_source, load_shown
from qgrag.cli.outputs import check_output_folder
from qgrag.cli.parsing import command_parser
from qgrag.config import load_yaml
from qgrag.errors import ConfigError
from qgrag.evaluation.bootstrap import BootstrapConfig
from qgrag.evaluation.metrics import DEFAULT_KS
from qgrag.evaluation.plots import plot_sweeps
from qgrag.evaluation.sweep.points import named_sweeps, with_device
from qgrag.evaluation.sweep.report import sweep_table

EXAMPLES = """Measure one retriever over ranges of its parameters, as in the panels of QCG-RAG's figures 3 to 6.
Each value is compared with the sweep's base on the same questions. The base is the first value, or the one that `base`
names. The same command continues a sweep that was stopped; what was measured is not measured again. OUT gets a PNG, and
points.parquet for each sweep.

  qgrag sweep --config configs/sweep/qcg-figure5.yaml --dataset lihuaworld --data DATA/lihuaworld --out runs/figure5
  qgrag sweep --config configs/sweep/demo.yaml --dataset demo --out runs/sweep

A configuration is {title, metric, group, sweeps: [...]}. A sweep is {name, x, values, series, series_values, retriever,
index, base}, where x and series are fields of the retriever's configuration or index.FIELD.
"""


def make_parser() -> ArgumentParser:
    parser = command_parser("sweep", EXAMPLES)
    parser.add_argument("--config", type=str, required=True, help="YAML file of the sweeps")
    add_dataset_arguments(parser)
    parser.add_argument("--out", type=str, required=True, help="folder of the sweep")
    parser.add_argument("--device", type=str, default="auto", help="auto, cpu, cuda, cuda:1, ...")
    return parser


def run(arguments: Sequence[str]) -> int:
    args = make_parser().parse_args(list(arguments))
    from qgrag.evaluation.sweep.running import run_sweep

    console = Console()
    check_output_folder(args.out)
    values = load_yaml(Path(args.config))
    sweeps = [with_device(sweep, args.device) for sweep in named_sweeps(values, args.config)]
    metric, group = str(values.get("metric", "recall@5")), str(values.get("group", "overall"))
    dataset = load_shown(data_source(args), console)
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
    console.print(f"written to {out}: sweep.png, and points.parquet in a folder for each sweep", highlight=False)
    return 0
