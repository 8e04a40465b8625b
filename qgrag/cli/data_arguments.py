"""Flags and files that the commands of `qgrag data` share."""

from collections.abc import Callable, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any, TypeVar

from jsonargparse import ArgumentParser, Namespace
from rich.console import Console
from rich.markup import escape

from qgrag.cli.show import show_problems
from qgrag.errors import InputError
from qgrag.evaluation.datasets import DATASETS, load_dataset
from qgrag.training.gold_pairs import GoldQuestion
from qgrag.training.pairs import TrainingPair
from qgrag.training.reward_examples import RewardExample
from qgrag.training.splits import split_by_group

T = TypeVar("T", TrainingPair, RewardExample)
PARTS = ("train", "val", "test")


def add_common_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("index", type=str, help="folder of an index")
    parser.add_argument("--out", type=str, required=True, help="folder for train.jsonl, val.jsonl and test.jsonl")
    parser.add_argument("--dataset", type=str | None, default=None, help=f"gold questions: {', '.join(DATASETS)}")
    parser.add_argument("--data", type=str | None, default=None, help="the publisher's files of --dataset")
    parser.add_argument("--questions", type=str | None, default=None, help="another question file of that format")
    parser.add_argument("--split", type=list[float], default=[0.8, 0.1, 0.1], help="shares of train, val and test")
    parser.add_argument("--seed", type=int, default=0, help="of the split and of random negatives")
    parser.add_argument("--device", type=str, default="auto", help="auto, cpu, cuda, cuda:1, ...")


def gold_questions(args: Namespace, console: Console) -> list[GoldQuestion]:
    """Questions of the data set that have gold."""
    data = load_dataset(
        args.dataset, Path(args.data) if args.data else None, Path(args.questions) if args.questions else None
    )
    show_problems(console, data.problems)
    questions = [GoldQuestion(question.text, question.gold) for question in data.questions if question.gold]
    if not questions:
        raise InputError(f"data set {args.dataset!r} has no question with gold documents")
    return questions


def split_parts(console: Console, args: Namespace, items: Sequence[T]) -> list[list[T]]:
    """The items split by group into parts. A question that is in several parts stays in the first of them."""
    if len(args.split) > len(PARTS):
        raise InputError(f"--split takes up to {len(PARTS)} shares, not {len(args.split)}")
    parts = split_by_group(items, lambda item: item.group, args.split, args.seed)
    seen: set[str] = set()
    for number, part in enumerate(parts):
        parts[number] = [item for item in part if item.query not in seen]
        seen.update(item.query for item in part)
    left_out = len(items) - sum(map(len, parts))
    if left_out:
        console.print(f"{left_out} examples left out: their question is in an earlier part too", highlight=False)
    return parts


def write_parts(
    console: Console, args: Namespace, parts: Sequence[Sequence[T]], write: Callable[[Path, Sequence[T]], Any]
) -> None:
    """Write one file per part, and remove the files of an earlier split into more parts."""
    out = Path(args.out)
    for name, part in zip_longest(PARTS, parts):
        path = out / f"{name}.jsonl"
        if part is None:
            path.unlink(missing_ok=True)
            continue
        write(path, part)
        number = len({item.group for item in part})
        console.print(f"{escape(str(path))}: {len(part)} examples of {number} groups", highlight=False)
