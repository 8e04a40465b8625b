"""`qgrag data pairs`: pairs of queries and texts, to fine-tune an embedding model."""

from collections.abc import Sequence

from rich.console import Console

from qgrag.cli.data_arguments import add_common_arguments, gold_questions, split_parts, write_parts
from qgrag.cli.outputs import check_output_folder
from qgrag.cli.parsing import command_parser
from qgrag.index.reader import Index
from qgrag.models.tokenizer import token_spans
from qgrag.training.gold_pairs import (
    document_groups,
    pairs_of_index,
    pairs_of_questions,
    usable_negatives,
    with_hard_negatives,
    with_random_negatives,
)
from qgrag.training.mining import MiningConfig
from qgrag.training.pairs import write_pairs
from qgrag.training.windows import with_windows

PAIRS = """Training pairs as JSON lines {"query", "pos", "neg"}, split so that no question, and no document that
is asked about, is on both sides; not as a negative either.

  qgrag data pairs my-index --out pairs                            from the index's own question-answer pairs
  qgrag data pairs my-index --out pairs --negatives hard           with negatives that the index finds
  qgrag data pairs squad-index --out pairs --dataset squad --data train.json --group title
"""


def run(arguments: Sequence[str]) -> int:
    parser = command_parser("data pairs", PAIRS)
    add_common_arguments(parser)
    parser.add_argument("--group", choices=["document", "title"], default="document", help="what a split keeps whole")
    parser.add_argument("--negatives", choices=["none", "random", "hard"], default="random", help="given negatives")
    parser.add_argument(
        "--window",
        type=int,
        default=0,
        help="tokens that a passage is cut to, around what the query asks; 0 keeps passages whole",
    )
    parser.add_class_arguments(MiningConfig, "mining")
    args = parser.instantiate_classes(parser.parse_args(list(arguments)))
    console = Console()
    check_output_folder(args.out)
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
