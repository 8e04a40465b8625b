"""Flags that name a data set, and the data set that they name."""

from pathlib import Path

from jsonargparse import ArgumentParser, Namespace
from rich.console import Console

from qgrag.cli.show import show_problems
from qgrag.evaluation.datasets import DATASETS, Dataset
from qgrag.evaluation.runs.experiment import DataSource


def add_dataset_arguments(parser: ArgumentParser) -> None:
    """Which data set, and which of its questions."""
    parser.add_argument("--dataset", choices=DATASETS, required=True, help="format of the data")
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
        args.limit,
        args.seed,
    )


def load_shown(source: DataSource, console: Console) -> Dataset:
    """The data set, after its problems were printed."""
    dataset = source.load()
    show_problems(console, dataset.problems, "note")
    return dataset
