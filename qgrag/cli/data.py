"""`qgrag data`: training data from gold questions or from an index itself."""

import random
from collections.abc import Callable, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any, TypeVar

from jsonargparse import ArgumentParser, Namespace
from rich.console import Console
from rich.markup import escape

from qgrag.cli.parsing import command_parser
from qgrag.cli.show import show_problems
from qgrag.config import from_plain, load_yaml, unknown_name
from qgrag.errors import InputError
from qgrag.evaluation.datasets import DATASETS, load_dataset
from qgrag.generation.subgraph_scores import SubgraphJudge
from qgrag.index.reader import Index
from qgrag.llm.config import LLMConfig
from qgrag.llm.load import load_language_model
from qgrag.models.tokenizer import token_spans
from qgrag.retrieval.methods.qmkgf.retriever import QMKGFConfig
from qgrag.training.bridge_questions import bridge_questions
from qgrag.training.gold_pairs import (
    GoldQuestion,
    document_groups,
    pairs_of_index,
    pairs_of_questions,
    question_groups,
    questions_of_pairs,
    usable_negatives,
    with_hard_negatives,
    with_random_negatives,
)
from qgrag.training.mining import MiningConfig
from qgrag.training.pairs import TrainingPair, write_pairs
from qgrag.training.reward_examples import RewardExample, best_shares, write_rewards
from qgrag.training.reward_labels import label_by_judge, label_by_utility, subgraph_candidates
from qgrag.training.splits import split_by_group
from qgrag.training.vector_cache import VectorCache
from qgrag.training.windows import with_windows

T = TypeVar("T", TrainingPair, RewardExample)
PARTS = ("train", "val", "test")

USAGE = """usage: qgrag data {pairs,rewards} INDEX --out FOLDER [options]

  pairs     queries with texts that answer them and texts that do not, to fine-tune an embedding model
  rewards   subgraphs of each question with how much each helped, to train the reward model

Both write train.jsonl, val.jsonl and test.jsonl. See qgrag data pairs --help, qgrag data rewards --help.
"""

PAIRS = """Training pairs as JSON lines {"query", "pos", "neg"}, split so that no question, and no document that
is asked about, is on both sides; not as a negative either.

  qgrag data pairs my-index --out pairs                            from the index's own question-answer pairs
  qgrag data pairs my-index --out pairs --negatives hard           with negatives that the index finds
  qgrag data pairs squad-index --out pairs --dataset squad --data train.json --group title
"""


REWARDS = """The subgraphs that QMKGF builds for each question, labelled with how much each helps, as JSON lines
{"query", "subgraphs": [{"name", "triples", "reward"}]}. Questions that name no entity of the graph are left out.

  qgrag data rewards my-index --out rewards                        the index's own questions, labelled by retrieval
  qgrag data rewards my-index --out rewards --limit 800 --bridges 2000      most of them made to take two documents
  qgrag data rewards my-index --out rewards --dataset musique --data DATA/musique --group question
  qgrag data rewards my-index --out rewards --labels llm --llm llm.yaml
"""


def run(arguments: Sequence[str]) -> int:
    if not arguments or arguments[0] in {"-h", "--help"}:
        print(USAGE)
        return 0
    commands: dict[str, Callable[[Sequence[str]], int]] = {"pairs": run_pairs, "rewards": run_rewards}
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
    parser.add_argument(
        "--window", type=int, default=0, help="cut passages to so many tokens around what the query asks; 0: whole"
    )
    parser.add_class_arguments(MiningConfig, "mining")
    args = parser.instantiate_classes(parser.parse_args(list(arguments)))
    console = Console()
    index = Index.open(args.index, device=args.device)
    groups = document_groups(index, args.group)
    if args.dataset:
        pairs = pairs_of_questions(gold_questions(args, console), index, groups)
    else:
        pairs = pairs_of_index(index, groups)
    parts = split_parts(console, args, pairs)
    for number, usable in enumerate(usable_negatives(parts, index, groups)):
        if args.negatives == "hard":
            parts[number] = with_hard_negatives(parts[number], index, args.mining, usable)
        elif args.negatives == "random":
            parts[number] = with_random_negatives(parts[number], index, args.mining.count, args.seed, usable)
    if args.window:
        spans = token_spans(index.config.chunks.tokenizer)
        parts = [with_windows(part, args.window, spans) for part in parts]
    write_parts(console, args, parts, write_pairs)
    return 0


def run_rewards(arguments: Sequence[str]) -> int:
    parser = command_parser("data rewards", REWARDS)
    add_common_arguments(parser)
    parser.add_argument(
        "--group", choices=["document", "title", "question"], default="document", help="what a split keeps whole"
    )
    parser.add_argument("--limit", type=int, default=2000, help="questions taken, drawn by seed")
    parser.add_argument(
        "--bridges",
        type=int,
        default=0,
        help="besides, so many of the index's own questions that take two documents: a name replaced by how another "
        "document leads to it",
    )
    parser.add_argument("--cache", type=str, default="runs/vectors", help="folder of vectors, shared with training")
    parser.add_argument("--labels", choices=["utility", "llm"], default="utility", help="who says what helps")
    parser.add_argument("--llm", type=str | None, default=None, help="YAML file of a language model, for --labels llm")
    parser.add_argument("--llm-cache", type=str, default="runs/llm-cache.sqlite", help="where its answers are kept")
    parser.add_class_arguments(QMKGFConfig, "subgraphs")
    args = parser.instantiate_classes(parser.parse_args(list(arguments)))
    if args.limit < 0 or args.bridges < 0:
        raise InputError(f"--limit has to be at least 0 and --bridges at least 0, not {args.limit} and {args.bridges}")
    console = Console()
    index = Index.open(args.index, device=args.device)
    groups = document_groups(index, args.group)
    if args.bridges and args.dataset:
        raise InputError("--bridges makes questions of the index itself; leave --dataset out, or --bridges")
    if args.dataset:
        questions = sampled(gold_questions(args, console), args.limit, args.seed)
    else:
        pairs = pairs_of_index(index, groups)
        questions = sampled(questions_of_pairs(pairs), args.limit, args.seed)
        if args.bridges:
            questions += sampled(bridge_questions(index, pairs, args.seed), args.bridges, args.seed)
    texts = [question.text for question in questions]
    names = texts if args.group == "question" else question_groups(questions, groups)
    candidates = subgraph_candidates(texts, index, args.subgraphs)
    if args.labels == "llm":
        examples = label_by_judge(texts, candidates, names, load_judge(args))
    else:
        cached = VectorCache(args.cache, index.embedder)
        examples = label_by_utility(questions, candidates, names, index, cached, args.subgraphs.join)
    informative = sum(example.informative for example in examples)
    console.print(
        f"{len(examples)} of {len(questions)} questions have at least two subgraphs; in {informative} they differ",
        highlight=False,
    )
    shares = ", ".join(f"{name} in {share:.0%}" for name, share in best_shares(examples).items())
    console.print(f"most useful: {shares or 'none'}", highlight=False)
    write_parts(console, args, split_parts(console, args, examples), write_rewards)
    return 0


def sampled(questions: Sequence[GoldQuestion], count: int, seed: int) -> list[GoldQuestion]:
    """`count` of the questions, drawn by seed, or all of them in their order."""
    return random.Random(seed).sample(questions, count) if len(questions) > count else list(questions)


def load_judge(args: Namespace) -> SubgraphJudge:
    if not args.llm:
        raise InputError("--labels llm needs --llm FILE, the YAML configuration of a language model")
    config = from_plain(LLMConfig, load_yaml(Path(args.llm)), where=args.llm)
    cache = Path(args.llm_cache)
    cache.parent.mkdir(parents=True, exist_ok=True)
    return SubgraphJudge(load_language_model(config, cache))


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
    """Parts of a split by group. A question that documents of several parts are asked stays in the first of them."""
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
    """Write a file a part, and remove those that an earlier split into more parts left."""
    out = Path(args.out)
    for name, part in zip_longest(PARTS, parts):
        path = out / f"{name}.jsonl"
        if part is None:
            path.unlink(missing_ok=True)
            continue
        write(path, part)
        number = len({item.group for item in part})
        console.print(f"{escape(str(path))}: {len(part)} examples of {number} groups", highlight=False)
