"""`qgrag data`: training data from gold questions or from an index itself."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from jsonargparse import ArgumentParser, Namespace
from rich.console import Console
from rich.markup import escape

from qgrag.cli.parsing import command_parser
from qgrag.cli.show import show_problems
from qgrag.config import unknown_name
from qgrag.errors import InputError
from qgrag.evaluation.datasets import DATASETS, load_dataset
from qgrag.index.reader import Index
from qgrag.training.gold_pairs import (
    GoldQuestion,
    document_groups,
    pairs_of_index,
    pairs_of_questions,
    with_hard_negatives,
    with_random_negatives,
)
from qgrag.training.mining import MiningConfig
from qgrag.training.pairs import write_pairs
from qgrag.training.splits import split_by_group

T = TypeVar("T")
PARTS = ("train", "val", "test")

USAGE = """usage: qgrag data {pairs,rewards} INDEX --out FOLDER [options]

  pairs     queries with texts that answer them and texts that do not, to fine-tune an embedding model
  rewards   subgraphs of each question with how much each helped, to train the reward model

Both write train.jsonl, val.jsonl and test.jsonl. See qgrag data pairs --help, qgrag data rewards --help.
"""

PAIRS = """Training pairs as JSON lines {"query", "pos", "neg"}, split so that no document is on both sides.

  qgrag data pairs my-index --out pairs                            from the index's own question-answer pairs
  qgrag data pairs my-index --out pairs --negatives hard           with negatives that the index finds
  qgrag data pairs squad-index --out pairs --dataset squad --data train.json --group title
"""


def run(arguments: Sequence[str]) -> int:
    if not arguments or arguments[0] in {"-h", "--help"}:
        print(USAGE)
        return 0
    commands: dict[str, Callable[[Sequence[str]], int]] = {"pairs": run_pairs}
    if arguments[0] not in commands:
        raise InputError(f"{unknown_name('data to make', arguments[0], commands)}; see qgrag data --help")
    return commands[arguments[0]](arguments[1:])


def add_common_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("index", type=str, help="folder of an index")
    parser.add_argument("--out", type=str, required=True, help="folder for train.jsonl, val.jsonl and test.jsonl")
    parser.add_argument("--dataset", type=str | None, default=None, help=f"gold questions: {', '.join(DATASETS)}")
    parser.add_argument("--data", type=str | None, default=None, help="the publisher's files of --dataset")
    parser.add_argument("--questions", type=str | None, default=None, help="another question file of that format")
    parser.add_argument("--split", type=list[float], default=[0.8, 0.1, 0.1], help="shares of train, val and test")
    parser.add_argument("--seed", type=int, default=0, help="of the split and of random negatives")
    parser.add_argument("--device", type=str, default="auto", help="auto, cpu, cuda, cuda:1, ...")


def run_pairs(arguments: Sequence[str]) -> int:
    parser = command_parser("data pairs", PAIRS)
    add_common_arguments(parser)
    parser.add_argument("--group", choices=["document", "title"], default="document", help="what a split keeps whole")
    parser.add_argument("--negatives", choices=["none", "random", "hard"], default="random", help="given negatives")
    parser.add_class_arguments(MiningConfig, "mining")
    args = parser.instantiate_classes(parser.parse_args(list(arguments)))
    console = Console()
    index = Index.open(args.index, device=args.device)
    groups = document_groups(index, args.group)
    if args.dataset:
        pairs = pairs_of_questions(gold_questions(args, console), index, groups)
    else:
        pairs = pairs_of_index(index, groups)
    if args.negatives == "hard":
        pairs = with_hard_negatives(pairs, index, args.mining)
    elif args.negatives == "random":
        pairs = with_random_negatives(pairs, index, args.mining.count, args.seed)
    write_parts(console, args, pairs, lambda pair: pair.group, write_pairs)
    return 0


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


def write_parts(
    console: Console,
    args: Namespace,
    items: Sequence[T],
    group: Callable[[T], str],
    write: Callable[[Path, Sequence[T]], Any],
) -> None:
    """Split by group and write a file a part."""
    if len(args.split) > len(PARTS):
        raise InputError(f"--split takes up to {len(PARTS)} shares, not {len(args.split)}")
    out = Path(args.out)
    for name, part in zip(PARTS, split_by_group(items, group, args.split, args.seed)):
        write(out / f"{name}.jsonl", part)
        number = len({group(item) for item in part})
        console.print(f"{escape(str(out / name))}.jsonl: {len(part)} examples of {number} groups", highlight=False)
