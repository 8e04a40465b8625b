"""Flags that name a data set, and the data set that they name."""

from dataclasses import replace
from pathlib import Path

from jsonargparse import ArgumentParser, Namespace
from rich.console import Console

from qgrag.cli.show import show_problems
from qgrag.errors import ConfigError
from qgrag.evaluation.datasets import DATASETS, Dataset
from qgrag.evaluation.datasets.sources import DataSource, load_sets


def add_dataset_arguments(parser: ArgumentParser, *, required: bool = True) -> None:
    """Which data set, and which of its questions."""
    parser.add_argument("--dataset", choices=DATASETS, required=required, default=None, help="format of the data")
    parser.add_argument(
        "--data", type=str | None, default=None, help="folder of the publisher's files; demo needs none"
    )
    parser.add_argument("--questions", type=str | None, default=None, help="another question file of the same format")
    parser.add_argument("--split", type=str | None, default=None, help="which split's questions, as BEIR has them: dev")
    parser.add_argument(
        "--limit", type=int | None, default=None, help="number of questions, drawn by --seed; all if not given"
    )
    parser.add_argument("--seed", type=int, default=0, help="seed of the bootstrap intervals and of --limit")


def data_source(args: Namespace) -> DataSource:
    """What `add_dataset_arguments` names."""
    return DataSource(
        args.dataset,
        Path(args.data) if args.data else None,
        Path(args.questions) if args.questions else None,
        args.split,
        limit=args.limit,
        seed=args.seed,
    )


def named_sources(args: Namespace) -> dict[str, DataSource]:
    """The data sets by the folder of their run in OUT: those of `--sets`, or the one of `--dataset` in OUT itself."""
    if args.sets is None:
        if args.dataset is None:
            raise ConfigError("name a data set (--dataset), or a file of several (--sets)")
        if args.index and args.index_config:
            raise ConfigError("--index names an index as it is and --index-config how one is built: leave one out")
        return {"": replace(data_source(args), index=Path(args.index) if args.index else None)}
    for flag in ("dataset", "data", "questions", "split", "limit", "index"):
        if args[flag] is not None:
            raise ConfigError(f"--{flag} belongs to one data set: write it into {args.sets}, or leave --sets out")
    return load_sets(Path(args.sets), args.seed)


def load_shown(source: DataSource, console: Console) -> Dataset:
    """The data set, after its problems were printed."""
    dataset = source.load()
    show_problems(console, dataset.problems, "note")
    return dataset
