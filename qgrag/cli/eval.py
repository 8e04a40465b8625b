"""`qgrag eval`: retrievers measured on a data set."""

import dataclasses
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from jsonargparse import ArgumentParser
from rich.console import Console

from qgrag.cli.parsing import command_parser
from qgrag.cli.show import show_problems
from qgrag.config import from_plain, load_yaml
from qgrag.errors import InputError
from qgrag.evaluation.datasets import DATASETS, load_dataset
from qgrag.evaluation.harness import run_evaluation
from qgrag.evaluation.metrics import DEFAULT_KS
from qgrag.evaluation.report import summary_table
from qgrag.evaluation.run_folder import RunFolder
from qgrag.index.builder import build_index
from qgrag.index.config import IndexConfig
from qgrag.index.reader import Index
from qgrag.retrieval.base import Retriever
from qgrag.retrieval.registry import RETRIEVERS, load_retriever

EXAMPLES = """Measure retrievers on a data set: a table on screen, and in OUT summary.json, each result, and a
plot of recall by k. The corpus is indexed first, into OUT/index, unless --index names an index of it. A run that was
stopped goes on; a run never overwrites another.

  qgrag eval --dataset demo --out runs/demo
  qgrag eval --dataset lihuaworld --data DATA/lihuaworld --retrievers naive,bm25,hybrid,qcg --out runs/lihua
  qgrag eval --dataset jsonl --data my-corpus/ --questions q.jsonl --retrievers qcg,my-qcg.yaml --out runs/mine
"""


def make_parser() -> ArgumentParser:
    parser = command_parser("eval", EXAMPLES)
    parser.add_argument("--dataset", choices=DATASETS, required=True, help="format of the data")
    parser.add_argument(
        "--data", type=str | None, default=None, help="folder of the publisher's files; demo needs none"
    )
    parser.add_argument("--questions", type=str | None, default=None, help="another question file of the same format")
    parser.add_argument(
        "--retrievers",
        type=str,
        default=",".join(RETRIEVERS),
        help="names or YAML files, joined by commas; a file's row in the table is its name without .yaml",
    )
    parser.add_argument("--out", type=str, required=True, help="folder of the run")
    parser.add_argument(
        "--index", type=str | None, default=None, help="an index of this corpus; OUT/index if not given"
    )
    parser.add_argument("--index-config", type=str | None, default=None, help="YAML file for building the index")
    parser.add_argument("--ks", type=list[int], default=list(DEFAULT_KS), help="cut-offs of the metrics")
    parser.add_argument("--batch-size", type=int, default=64, help="questions scored together")
    parser.add_argument("--seed", type=int, default=0, help="of the bootstrap intervals")
    parser.add_argument("--device", type=str, default="auto", help="auto, cpu, cuda, cuda:1, ...")
    return parser


def run(arguments: Sequence[str]) -> int:
    args = make_parser().parse_args(arguments)
    console = Console()
    out = Path(args.out)
    start = time.perf_counter()
    dataset = load_dataset(
        args.dataset, Path(args.data) if args.data else None, Path(args.questions) if args.questions else None
    )
    seconds = {"reading": time.perf_counter() - start}
    show_problems(console, dataset.problems, "note")
    config = IndexConfig()
    if args.index_config:
        config = from_plain(IndexConfig, load_yaml(Path(args.index_config)), where=args.index_config)
    settings = {"index": config.identity()}
    RunFolder(out).check_config(settings)
    folder = Path(args.index) if args.index else out / "index"
    report = build_index(dataset.documents, folder, config)
    seconds |= {f"index: {stage}": spent for stage, spent in report.seconds.items()}
    index = Index.open(folder, device=args.device)
    retrievers = named_retrievers(index, args.retrievers)
    summary = run_evaluation(
        dataset,
        retrievers,
        out,
        ks=args.ks,
        batch=args.batch_size,
        seed=args.seed,
        config={**settings, "embedder": index.manifest.embedder, "extractors": index.manifest.extractors},
        retriever_configs={name: settings_of(retriever) for name, retriever in retrievers.items()},
        stage_seconds=seconds,
    )
    console.print(summary_table(summary))
    console.print(f"written to {out}: summary.json, results.parquet, recall.png", highlight=False)
    return 0


def named_retrievers(index: Index, names: str) -> dict[str, Retriever]:
    """Retrievers by row name.

    Raises:
        InputError: two of the names give one row.
    """
    retrievers: dict[str, Retriever] = {}
    for name in filter(None, (part.strip() for part in names.split(","))):
        row = Path(name).stem if name.endswith((".yaml", ".yml")) else name
        if row in retrievers:
            raise InputError(f"--retrievers names {row!r} twice; rename one of the files")
        retrievers[row] = load_retriever(index, name)
    return retrievers


def settings_of(retriever: Retriever) -> dict[str, Any]:
    config = getattr(retriever, "config", None)
    return {"retriever": retriever.name, **(dataclasses.asdict(config) if config is not None else {})}
