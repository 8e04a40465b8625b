"""`qgrag data rewards`: subgraphs of each question, labelled with how much each helps, to train the reward model."""

from collections.abc import Sequence
from pathlib import Path

from jsonargparse import ArgumentParser, Namespace
from rich.console import Console

from qgrag.cli.data_arguments import add_common_arguments, gold_questions, split_parts, write_parts
from qgrag.cli.outputs import check_output_folder
from qgrag.cli.parsing import command_parser
from qgrag.config import from_plain, load_yaml
from qgrag.errors import InputError
from qgrag.generation.subgraph_scores import SubgraphJudge
from qgrag.index.reader import Index
from qgrag.llm.cached_model import load_language_model
from qgrag.llm.config import LLMConfig
from qgrag.retrieval.methods.qmkgf.retriever import QMKGFConfig
from qgrag.training.bridge_questions import bridge_questions
from qgrag.training.gold_pairs import (
    document_groups,
    pairs_of_index,
    question_groups,
    questions_of_pairs,
    sampled,
)
from qgrag.training.reward_examples import best_shares, write_rewards
from qgrag.training.reward_labels import label_by_judge, label_by_utility, subgraph_candidates
from qgrag.training.vector_cache import VectorCache

REWARDS = """The subgraphs that QMKGF builds for each question, labelled with how much each helps, as JSON lines
{"query", "subgraphs": [{"name", "triples", "reward"}]}. Questions that name no entity of the graph are left out.

  qgrag data rewards my-index --out rewards                        the index's own questions, labelled by retrieval
  qgrag data rewards my-index --out rewards --limit 800 --bridges 2000      most of them made to take two documents
  qgrag data rewards my-index --out rewards --dataset musique --data DATA/musique --group question
  qgrag data rewards my-index --out rewards --labels llm --llm llm.yaml
"""


def make_parser() -> ArgumentParser:
    parser = command_parser("data rewards", REWARDS)
    add_common_arguments(parser)
    parser.add_argument(
        "--group", choices=["document", "title", "question"], default="document", help="what a split keeps whole"
    )
    parser.add_argument("--limit", type=int, default=2000, help="number of questions taken, drawn by --seed")
    parser.add_argument(
        "--bridges",
        type=int,
        default=0,
        help="number of further questions that take two documents: in a question of the index, a name is replaced by "
        "how another document leads to it",
    )
    parser.add_argument("--cache", type=str, default="runs/vectors", help="folder of vectors, shared with training")
    parser.add_argument("--labels", choices=["utility", "llm"], default="utility", help="who says what helps")
    parser.add_argument("--llm", type=str | None, default=None, help="YAML file of a language model, for --labels llm")
    parser.add_argument("--llm-cache", type=str, default="runs/llm-cache.sqlite", help="where its answers are kept")
    parser.add_class_arguments(QMKGFConfig, "subgraphs")
    return parser


def run(arguments: Sequence[str]) -> int:
    parser = make_parser()
    args = parser.instantiate_classes(parser.parse_args(list(arguments)))
    if args.limit < 0 or args.bridges < 0:
        raise InputError(f"--limit has to be at least 0 and --bridges at least 0, not {args.limit} and {args.bridges}")
    console = Console()
    check_output_folder(args.out)
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


def load_judge(args: Namespace) -> SubgraphJudge:
    if not args.llm:
        raise InputError("--labels llm needs --llm FILE, the YAML configuration of a language model")
    config = from_plain(LLMConfig, load_yaml(Path(args.llm)), where=args.llm)
    cache = Path(args.llm_cache)
    cache.parent.mkdir(parents=True, exist_ok=True)
    return SubgraphJudge(load_language_model(config, cache))
