"""`qgrag eval`: retrievers, and answers from what they find, measured on a data set."""

import dataclasses
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from jsonargparse import ArgumentParser, Namespace
from rich.console import Console

from qgrag.cli.llm_arguments import (
    HOW_TO_NAME,
    add_asking_arguments,
    llm_config,
    named_prompts,
    open_language_model,
)
from qgrag.cli.parsing import command_parser
from qgrag.cli.show import show_problems
from qgrag.config import from_plain, load_yaml
from qgrag.errors import ConfigError, InputError
from qgrag.evaluation.answer_report import answer_table
from qgrag.evaluation.answering import AnswerRun, Measures, Writer, run_answers
from qgrag.evaluation.answers import Language
from qgrag.evaluation.bootstrap import BootstrapConfig
from qgrag.evaluation.datasets import DATASETS, load_dataset
from qgrag.evaluation.datasets.records import Dataset
from qgrag.evaluation.datasets.sampling import sample_questions
from qgrag.evaluation.harness import run_evaluation, settings_of
from qgrag.evaluation.meteor import load_meteor
from qgrag.evaluation.metrics import DEFAULT_KS
from qgrag.evaluation.report import summary_table
from qgrag.evaluation.run_folder import RunFolder
from qgrag.generation.answers import AnswerConfig, AnswerWriter
from qgrag.generation.correctness import CorrectnessJudge
from qgrag.generation.local_answers import LocalAnswerWriter
from qgrag.generation.pairwise import PairwiseJudge
from qgrag.index.builder import build_index
from qgrag.index.config import IndexConfig
from qgrag.index.reader import Index
from qgrag.llm.config import LLMConfig
from qgrag.llm.load import load_language_model
from qgrag.llm.model import LanguageModel
from qgrag.llm.prompts import PromptConfig, Prompts
from qgrag.retrieval.base import Retriever
from qgrag.retrieval.registry import STANDARD, load_retriever

EXAMPLES = """Measure retrievers on a data set: a table on screen, and in OUT summary.json, each result, and a
plot of recall by k. The corpus is indexed first, into OUT/index, unless --index names an index of it. With --answer a
language model answers each question from what was found, and the answers are measured too. A run that was stopped goes
on; a run never overwrites another.

  qgrag eval --dataset demo --out runs/demo
  qgrag eval --dataset lihuaworld --data DATA/lihuaworld --retrievers naive,bm25,hybrid,qcg --out runs/lihua
  qgrag eval --dataset jsonl --data my-corpus/ --questions q.jsonl --retrievers qcg,my-qcg.yaml --out runs/mine
  qgrag eval --dataset demo --answer --llm llm.yaml --judge same --retrievers llm-only,naive,qcg --out runs/answers
  qgrag eval --dataset jsonl --data corpus.jsonl --questions qfs.jsonl --answer --style long --llm llm.yaml \\
    --compare fg --retrievers fg,naive --out runs/qfs
"""


def make_parser() -> ArgumentParser:
    parser = command_parser("eval", EXAMPLES)
    add_data_arguments(parser)
    parser.add_argument(
        "--retrievers",
        type=str,
        default=",".join(STANDARD),
        help="names or YAML files, joined by commas; a file's row in the table is its name without .yaml",
    )
    parser.add_argument("--ks", type=list[int], default=list(DEFAULT_KS), help="cut-offs of the metrics")
    parser.add_argument("--batch-size", type=int, default=64, help="questions scored together")
    parser.add_argument("--seed", type=int, default=0, help="of the bootstrap intervals and of --limit")
    parser.add_argument("--answer", action="store_true", help="answer the questions too, and measure the answers")
    parser.add_argument(
        "--reader", choices=["llm", "local"], default="llm", help="who answers: a language model, or rules"
    )
    parser.add_argument("--style", choices=["short", "long"], default="short", help="a phrase, or a full text")
    parser.add_argument("--passages", type=int, default=5, help="passages that the reader gets")
    parser.add_argument("--evidence-tokens", type=int, default=6000, help="most tokens of evidence that it gets")
    parser.add_argument("--language", type=Language, default="en", help="of questions and answers: en or zh")
    parser.add_argument("--meteor", action="store_true", help="METEOR too, which needs NLTK and its WordNet")
    parser.add_argument(
        "--judge", type=str | None, default=None, help="who judges: 'same' for the reader's model, or a YAML file"
    )
    parser.add_argument(
        "--compare", type=str | None, default=None, help="a retriever: win rates of its answers over each other one's"
    )
    parser.add_argument("--answer-batch-size", type=int, default=16, help="questions answered together")
    add_asking_arguments(parser)
    return parser


def add_data_arguments(parser: ArgumentParser) -> None:
    """Which data set, how many of its questions, over which index; and where the run goes."""
    parser.add_argument("--dataset", choices=DATASETS, required=True, help="format of the data")
    parser.add_argument(
        "--data", type=str | None, default=None, help="folder of the publisher's files; demo needs none"
    )
    parser.add_argument("--questions", type=str | None, default=None, help="another question file of the same format")
    parser.add_argument("--limit", type=int | None, default=None, help="so many questions only, drawn by --seed")
    parser.add_argument("--out", type=str, required=True, help="folder of the run")
    parser.add_argument(
        "--index", type=str | None, default=None, help="an index of this corpus; OUT/index if not given"
    )
    parser.add_argument("--index-config", type=str | None, default=None, help="YAML file for building the index")
    parser.add_argument("--device", type=str, default="auto", help="auto, cpu, cuda, cuda:1, ...")


def run(arguments: Sequence[str]) -> int:
    parser = make_parser()
    args = parser.instantiate_classes(parser.parse_args(list(arguments)))
    console = Console()
    out = Path(args.out)
    dataset, seconds = named_dataset(args, console)
    config = IndexConfig()
    if args.index_config:
        config = from_plain(IndexConfig, load_yaml(Path(args.index_config)), where=args.index_config)
    prompts = named_prompts(args)
    settings: dict[str, Any] = {"index": config.identity(), "limit": args.limit, "llm_steps": args.llm_steps}
    if args.llm_steps:
        settings |= {"model": llm_config(args).model, **own_prompts(prompts)}
    RunFolder(out).check_config(settings)
    folder = Path(args.index) if args.index else out / "index"
    report = build_index(dataset.documents, folder, config)
    seconds |= {f"index: {stage}": spent for stage, spent in report.seconds.items()}
    index = Index.open(folder, device=args.device)
    with open_language_model(args, out / "llm-cache.sqlite") as model:
        if model is None and (args.llm_steps or (args.answer and args.reader == "llm")):
            raise ConfigError(f"--answer and --llm-steps need a language model: {HOW_TO_NAME}; or --reader local")
        retrievers = named_retrievers(index, args.retrievers, model if args.llm_steps else None, prompts)
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
        if args.answer:
            answer(args, console, dataset, list(retrievers), index, model, prompts)
    console.print(f"written to {out}: summary.json, results.parquet, recall.png", highlight=False)
    return 0


def named_dataset(args: Namespace, console: Console) -> tuple[Dataset, dict[str, float]]:
    """The data set that `add_data_arguments` names, and the seconds that reading it took."""
    start = time.perf_counter()
    dataset = load_dataset(
        args.dataset, Path(args.data) if args.data else None, Path(args.questions) if args.questions else None
    )
    show_problems(console, dataset.problems, "note")
    if args.limit is not None:
        dataset = sample_questions(dataset, args.limit, seed=args.seed)
    return dataset, {"reading": time.perf_counter() - start}


def answer(
    args: Namespace,
    console: Console,
    dataset: Dataset,
    retrievers: Sequence[str],
    index: Index,
    model: LanguageModel | None,
    prompts: Prompts,
) -> None:
    """Write, measure and show the answers."""
    config = AnswerConfig(args.style, args.passages, args.evidence_tokens)
    write: Writer
    if args.reader == "local":
        write = LocalAnswerWriter(index.embedder.encode_queries, config)
    else:
        assert model is not None
        write = AnswerWriter(model, config, prompts)
    cache = None if args.no_cache else Path(args.out) / "llm-cache.sqlite"
    with open_judge(args.judge, cache, model) as judge:
        if args.compare and judge is None:
            raise ConfigError("--compare needs a judge: --judge same, or --judge FILE.yaml")
        measures = Measures(
            args.language,
            CorrectnessJudge(judge, prompts) if judge is not None and not args.compare else None,
            load_meteor() if args.meteor else None,
            PairwiseJudge(judge, prompts) if judge is not None and args.compare else None,
            args.compare or "",
        )
        run = AnswerRun(
            args.answer_batch_size,
            {
                "answers": dataclasses.asdict(config),
                "reader": model.name if args.reader == "llm" and model is not None else args.reader,
                "judge": judge.name if judge is not None else None,
                **own_prompts(prompts),
            },
            BootstrapConfig(seed=args.seed),
        )
        summary = run_answers(dataset, retrievers, Path(args.out), write, measures, run)
    console.print(answer_table(summary))
    console.print(f"written to {args.out}: answers.json", highlight=False)


def own_prompts(prompts: Prompts) -> dict[str, Any]:
    """What a run records of prompts that are not the package's: their language and fingerprints."""
    config = prompts.config
    if config == PromptConfig():
        return {}
    return {"prompts": {"language": config.language} | {name: prompts[name].fingerprint for name in config.files}}


@contextmanager
def open_judge(name: str | None, cache: Path | None, same: LanguageModel | None) -> Iterator[LanguageModel | None]:
    """The judge: none, the model `same`, or that of a YAML file.

    Raises:
        ConfigError: `same` is asked for and there is no language model.
    """
    if name is None:
        yield None
        return
    if name == "same":
        if same is None:
            raise ConfigError(f"--judge same needs a language model: {HOW_TO_NAME}")
        yield same
        return
    model = load_language_model(from_plain(LLMConfig, load_yaml(Path(name)), where=name), cache)
    try:
        yield model
    finally:
        model.close()


def named_retrievers(
    index: Index, names: str, model: LanguageModel | None = None, prompts: Prompts | None = None
) -> dict[str, Retriever]:
    """Retrievers by row name.

    Raises:
        InputError: two of the names give one row.
    """
    retrievers: dict[str, Retriever] = {}
    for name in filter(None, (part.strip() for part in names.split(","))):
        row = Path(name).stem if name.endswith((".yaml", ".yml")) else name
        if row in retrievers:
            raise InputError(f"--retrievers names {row!r} twice; rename one of the files")
        retrievers[row] = load_retriever(index, name, model=model, prompts=prompts)
    return retrievers
