"""`qgrag eval`: retrievers, and answers from what they find, measured on a data set."""

import time
from collections.abc import Sequence
from pathlib import Path

from jsonargparse import ArgumentParser
from rich.console import Console

from qgrag.cli.answer_arguments import add_answer_arguments, answer_plan, open_models
from qgrag.cli.dataset_arguments import add_dataset_arguments, data_source, load_shown
from qgrag.cli.llm_arguments import HOW_TO_NAME, add_asking_arguments
from qgrag.cli.parsing import command_parser
from qgrag.config import from_plain, load_yaml
from qgrag.errors import ConfigError
from qgrag.evaluation.answers.report import answer_table
from qgrag.evaluation.metrics import DEFAULT_KS
from qgrag.evaluation.runs.experiment import Experiment, evaluate_answers, evaluate_retrieval
from qgrag.evaluation.runs.report import summary_table
from qgrag.index.config import IndexConfig
from qgrag.retrieval.registry import STANDARD

WRITTEN = ("summary.json", "table.md", "results.parquet", "recall.png", "answers.json")
EXAMPLES = """Measure retrievers on a data set. The command prints a table, and writes to OUT a summary, each result
and a plot of recall by k. The corpus is indexed first, into OUT/index, unless --index names an index of it. With
--answer a language model answers each question from what was found, and the answers are measured too. The same command
continues a run that was stopped; a run never overwrites another.

  qgrag eval --dataset demo --out runs/demo
  qgrag eval --dataset lihuaworld --data DATA/lihuaworld --retrievers naive,bm25,hybrid,qcg --out runs/lihua
  qgrag eval --dataset jsonl --data my-corpus/ --questions q.jsonl --retrievers qcg,my-qcg.yaml --out runs/mine
  qgrag eval --dataset demo --answer --llm llm.yaml --judge same --retrievers llm-only,naive,qcg --out runs/answers
  qgrag eval --dataset jsonl --data corpus.jsonl --questions qfs.jsonl --answer --style long --llm llm.yaml \\
    --compare fg --retrievers fg,naive --out runs/qfs
"""


def make_parser() -> ArgumentParser:
    parser = command_parser("eval", EXAMPLES)
    add_dataset_arguments(parser)
    parser.add_argument("--out", type=str, required=True, help="folder of the run")
    parser.add_argument(
        "--index", type=str | None, default=None, help="an index of this corpus; OUT/index if not given"
    )
    parser.add_argument("--index-config", type=str | None, default=None, help="YAML file for building the index")
    parser.add_argument("--device", type=str, default="auto", help="auto, cpu, cuda, cuda:1, ...")
    parser.add_argument(
        "--retrievers",
        type=str,
        default=",".join(STANDARD),
        help="names or YAML files, joined by commas; a file's row in the table is its name without .yaml",
    )
    parser.add_argument("--ks", type=list[int], default=list(DEFAULT_KS), help="cut-offs of the metrics")
    parser.add_argument("--batch-size", type=int, default=64, help="number of questions that are scored together")
    add_answer_arguments(parser)
    add_asking_arguments(parser)
    return parser


def run(arguments: Sequence[str]) -> int:
    parser = make_parser()
    args = parser.instantiate_classes(parser.parse_args(list(arguments)))
    console = Console()
    out = Path(args.out)
    experiment = Experiment(
        tuple(name for part in args.retrievers.split(",") if (name := part.strip())),
        tuple(args.ks),
        args.batch_size,
        args.seed,
        Path(args.index) if args.index else None,
        from_plain(IndexConfig, load_yaml(Path(args.index_config)), where=args.index_config)
        if args.index_config
        else None,
        args.device,
        args.llm_steps,
        answer_plan(args),
    )
    source = data_source(args)
    began = time.perf_counter()
    dataset = load_shown(source, console)
    reading = time.perf_counter() - began
    experiment.check(dataset)
    with open_models(args, out / "llm-cache.sqlite") as models:
        if experiment.asks_model and models.reader is None:
            raise ConfigError(f"--answer and --llm-steps need a language model: {HOW_TO_NAME}; or --reader local")
        index, summary = evaluate_retrieval(experiment, source, dataset, out, models, reading_seconds=reading)
        console.print(summary_table(summary))
        if experiment.answers is not None:
            console.print(answer_table(evaluate_answers(experiment, dataset, index, out, models)))
    written = [name for name in WRITTEN if (out / name).exists()]
    console.print(f"written to {out}: {', '.join(written)}", highlight=False)
    return 0
