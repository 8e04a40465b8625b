"""`qgrag eval`: retrievers, and answers from what they find, measured on one data set or several."""

import time
from collections.abc import Sequence
from pathlib import Path

from jsonargparse import ArgumentParser
from rich.console import Console

from qgrag.cli.answer_arguments import add_answer_arguments, answer_plan, open_models
from qgrag.cli.dataset_arguments import add_dataset_arguments, load_shown, named_sources
from qgrag.cli.llm_arguments import HOW_TO_NAME, add_asking_arguments
from qgrag.cli.outputs import check_output_folder
from qgrag.cli.parsing import command_parser
from qgrag.cli.unfinished import keep_unfinished
from qgrag.config import from_plain, load_yaml
from qgrag.errors import ConfigError
from qgrag.evaluation.answers.report import answer_table
from qgrag.evaluation.datasets.sources import DataSource
from qgrag.evaluation.metrics import DEFAULT_KS
from qgrag.evaluation.runs.experiment import (
    Experiment,
    Models,
    compare_sets,
    evaluate_answers,
    evaluate_retrieval,
    failures,
)
from qgrag.evaluation.runs.report import sets_table, summary_table
from qgrag.index.config import IndexConfig
from qgrag.retrieval.registry import STANDARD

WRITTEN = ("summary.json", "table.md", "results.parquet", "recall.png", "answers.json", "sets.json", "sets.png")
EXAMPLES = """Measure retrievers on a data set. The command prints a table, and writes to OUT a summary, each result
and a plot of recall by k. The corpus is indexed first, into OUT/index, unless --index names an index of it. With
--answer a language model answers each question from what was found, and the answers are measured too. The same command
continues a run that was stopped; a run never overwrites another.

  qgrag eval --dataset demo --out runs/demo
  qgrag eval --dataset lihuaworld --data DATA/lihuaworld --retrievers naive,bm25,hybrid,qcg --out runs/lihua
  qgrag eval --dataset beir --data DATA/scifact --split dev --retrievers bm25,qcg --out runs/scifact
  qgrag eval --dataset jsonl --data my-corpus/ --questions q.jsonl --retrievers qcg,my-qcg.yaml --out runs/mine
  qgrag eval --sets sets.yaml --retrievers bm25,naive,qcg --out runs/all
  qgrag eval --dataset demo --answer --llm llm.yaml --judge same --retrievers llm-only,naive,qcg --out runs/answers
  qgrag eval --dataset jsonl --data corpus.jsonl --questions qfs.jsonl --answer --style long --llm llm.yaml \\
    --compare fg --retrievers fg,naive --out runs/qfs

A file of sets has one line per set, NAME: {dataset: FORMAT, data: FOLDER}, and optionally questions, split, index,
limit and seed. Each set is run in OUT/NAME; one table and one plot show all of them.
"""


def make_parser() -> ArgumentParser:
    parser = command_parser("eval", EXAMPLES)
    add_dataset_arguments(parser, required=False)
    parser.add_argument("--sets", type=str | None, default=None, help="YAML file of several data sets")
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
    check_output_folder(args.out)
    names = tuple(name for part in args.retrievers.split(",") if (name := part.strip()))
    where = args.index_config
    experiment = Experiment(
        names,
        tuple(args.ks),
        args.batch_size,
        args.seed,
        from_plain(IndexConfig, load_yaml(Path(where)), where=where) if where else None,
        args.device,
        args.llm_steps,
        answer_plan(args),
    )
    sources = named_sources(args)
    with open_models(args, out / "llm-cache.sqlite") as models:
        if experiment.asks_model and models.reader is None:
            raise ConfigError(f"--answer and --llm-steps need a language model: {HOW_TO_NAME}; or --reader local")
        for name, source in sources.items():
            if name:
                console.rule(name, align="left")
            measure(experiment, source, out / name, models, console)
    if args.sets:
        console.print(sets_table(compare_sets(experiment, list(sources), out)))
    written = [name for name in WRITTEN if (out / name).exists()]
    console.print(f"written to {out}: {', '.join(written)}", highlight=False)
    codes = [keep_unfinished(out / name, "eval", arguments, failures(experiment, out / name)) for name in sources]
    return max(codes)


def measure(experiment: Experiment, source: DataSource, out: Path, models: Models, console: Console) -> None:
    """Run one data set and print its tables."""
    began = time.perf_counter()
    dataset = load_shown(source, console)
    reading = time.perf_counter() - began
    experiment.check(dataset)
    index, summary = evaluate_retrieval(experiment, source, dataset, out, models, reading_seconds=reading)
    console.print(summary_table(summary))
    if experiment.answers is not None:
        console.print(answer_table(evaluate_answers(experiment, dataset, index, out, models)))
