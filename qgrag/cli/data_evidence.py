"""`qgrag data evidence`: pools of candidates of each question with their gold, to train the evidence model."""

from collections.abc import Sequence
from itertools import zip_longest
from pathlib import Path

from jsonargparse import ArgumentParser, Namespace
from rich.console import Console
from rich.markup import escape

from qgrag.cli.data_arguments import PARTS, add_common_arguments, gold_questions
from qgrag.cli.parsing import command_parser
from qgrag.errors import InputError
from qgrag.index.reader import Index
from qgrag.retrieval.methods.auto.pool import DEPTH, MEMBERS, SIZE
from qgrag.training.bridge_questions import bridge_questions
from qgrag.training.evidence_pools import draw_pools, save_pools
from qgrag.training.gold_pairs import (
    GoldQuestion,
    document_groups,
    pairs_of_index,
    question_groups,
    questions_of_pairs,
    sampled,
)
from qgrag.training.splits import split_by_group

EXAMPLES = """The candidates that the members of auto find for each question, with their features, and which are gold,
as train.safetensors, val.safetensors and test.safetensors.

  qgrag data evidence my-index --out ev                             the index's own questions: no labels are needed
  qgrag data evidence my-index --out ev --dataset jsonl --data corpus.jsonl --questions q.jsonl    your own labels
  qgrag data evidence my-index --out ev --dataset musique --data DATA/musique --split '[1.0]'      all for training
"""


def make_parser() -> ArgumentParser:
    parser = command_parser("data evidence", EXAMPLES)
    add_common_arguments(parser)
    parser.add_argument(
        "--group", choices=["document", "title", "question"], default="question", help="what a split keeps whole"
    )
    parser.add_argument("--limit", type=int, default=1000, help="number of questions taken, drawn by --seed")
    parser.add_argument(
        "--bridges",
        type=int,
        default=500,
        help="without --dataset: number of further questions of the index that take two documents, where it has any",
    )
    parser.add_argument(
        "--members", type=list[str], default=list(MEMBERS), help="retrievers whose rankings make the pools"
    )
    parser.add_argument("--depth", type=int, default=DEPTH, help="chunks taken of each of them")
    parser.add_argument("--size", type=int, default=SIZE, help="candidates per pool, at most")
    parser.add_argument(
        "--text", action="store_true", help="keep token states and sentences too, for model.text: attention"
    )
    return parser


def run(arguments: Sequence[str]) -> int:
    args = make_parser().parse_args(list(arguments))
    if min(args.limit, args.depth, args.size) < 1 or args.bridges < 0:
        raise InputError("--limit, --depth and --size have to be at least 1, and --bridges at least 0")
    console = Console()
    index = Index.open(args.index, device=args.device)
    questions = _questions(args, index, console)
    groups = document_groups(index, args.group)
    names = [q.text for q in questions] if args.group == "question" else question_groups(questions, groups)
    pools = draw_pools(index, questions, members=args.members, depth=args.depth, size=args.size, text=args.text)
    console.print(f"{len(pools)} pools; they hold {pools.ceiling:.1%} of the evidence", highlight=False)
    parts = split_by_group(range(len(questions)), names.__getitem__, args.split, args.seed)
    out = Path(args.out)
    for name, rows in zip_longest(PARTS, parts):
        path = out / f"{name}.safetensors"
        if rows is None:
            path.unlink(missing_ok=True)
            continue
        save_pools(path, pools.take(rows))
        console.print(f"{escape(str(path))}: {len(rows)} questions", highlight=False)
    return 0


def _questions(args: Namespace, index: Index, console: Console) -> list[GoldQuestion]:
    """Those of the data set, or the index's own with bridges among them."""
    if args.dataset:
        return sampled(gold_questions(args, console), args.limit, args.seed)
    pairs = pairs_of_index(index, document_groups(index, "document"))
    questions = sampled(questions_of_pairs(pairs), args.limit, args.seed)
    if args.bridges and index.manifest.config["knowledge_graph"] is not None:
        try:
            questions += sampled(bridge_questions(index, pairs, args.seed), args.bridges, args.seed)
        except InputError as error:
            console.print(f"no bridges: {error}", highlight=False)
    return list({question.text: question for question in questions}.values())
