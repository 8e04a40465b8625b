"""`qgrag eval`: retrievers, and answers from what they find, measured on a data set."""

import dataclasses
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from jsonargparse import ArgumentParser, Namespace
from rich.console import Console

from qgrag.cli.llm_arguments import (
    HOW_TO_NAME,
    add_asking_arguments,
    answer_cache,
    named_prompts,
    open_language_model,
)
from qgrag.cli.parsing import command_parser
from qgrag.cli.show import show_problems
from qgrag.config import from_plain, load_yaml, unknown_name
from qgrag.errors import ConfigError, InputError
from qgrag.evaluation.answers.answering import AnswerRun, Measures, Writer, run_answers
from qgrag.evaluation.answers.judging_table import Language, check_language
from qgrag.evaluation.answers.meteor import load_meteor
from qgrag.evaluation.answers.report import answer_table
from qgrag.evaluation.bootstrap import BootstrapConfig
from qgrag.evaluation.datasets import DATASETS, load_dataset
from qgrag.evaluation.datasets.records import Dataset
from qgrag.evaluation.datasets.sampling import sample_questions
from qgrag.evaluation.metrics import DEFAULT_KS
from qgrag.evaluation.runs.harness import dataset_settings, run_evaluation, settings_of
from qgrag.evaluation.runs.report import summary_table
from qgrag.evaluation.runs.run_folder import RunFolder
from qgrag.generation.answers import AnswerConfig, AnswerWriter
from qgrag.generation.correctness import CorrectnessJudge
from qgrag.generation.local_answers import LocalAnswerWriter
from qgrag.generation.pairwise import PairwiseJudge
from qgrag.index.builder import build_index
from qgrag.index.config import IndexConfig
from qgrag.index.documents import DocumentSet, compare
from qgrag.index.reader import Index
from qgrag.llm.budget_stop import StopAtBudget
from qgrag.llm.cached_model import CachedLanguageModel
from qgrag.llm.config import LLMConfig
from qgrag.llm.load import load_language_model
from qgrag.llm.model import LanguageModel, model_settings
from qgrag.llm.prompts import PromptConfig, Prompts
from qgrag.retrieval.base import Retriever
from qgrag.retrieval.registry import STANDARD, load_retriever, retriever_settings

WRITTEN = ("summary.json", "table.md", "results.parquet", "recall.png", "answers.json")
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
    _check_answer_arguments(args)
    config = AnswerConfig(args.style, args.passages, args.evidence_tokens)
    meteor = load_meteor() if args.meteor else None
    dataset, seconds = named_dataset(args, console)
    if args.answer:
        check_language(dataset.questions, args.language)
    prompts = named_prompts(args)
    with (
        open_language_model(args, out / "llm-cache.sqlite") as named,
        open_judge(args, out / "llm-cache.sqlite", named) as judge,
    ):
        model = StopAtBudget(named) if named else None
        if model is None and (args.llm_steps or (args.answer and args.reader == "llm")):
            raise ConfigError(f"--answer and --llm-steps need a language model: {HOW_TO_NAME}; or --reader local")
        measures = Measures(
            args.language,
            CorrectnessJudge(judge, prompts) if judge is not None and not args.compare else None,
            meteor,
            PairwiseJudge(judge, prompts) if judge is not None and args.compare else None,
            args.compare or "",
        )
        index, indexing = named_index(args, dataset, out / "index")
        settings: dict[str, Any] = {
            "index": index.config.identity(),
            "embedder": index.manifest.embedder,
            "extractors": index.manifest.extractors,
            "limit": args.limit,
            "llm_steps": args.llm_steps,
        }
        if args.llm_steps and model is not None:
            settings |= {"model": model_settings(model), **own_prompts(prompts)}
        retrievers = named_retrievers(index, args.retrievers, model if args.llm_steps else None, prompts)
        summary = run_evaluation(
            dataset,
            retrievers,
            out,
            ks=args.ks,
            batch=args.batch_size,
            seed=args.seed,
            config=settings,
            retriever_configs={name: settings_of(retriever) for name, retriever in retrievers.items()},
            stage_seconds=seconds | indexing,
        )
        console.print(summary_table(summary))
        if args.answer:
            write: Writer
            if args.reader == "local" or model is None:
                write = LocalAnswerWriter(index.embedder.encode_queries, config)
            else:
                write = AnswerWriter(model, config, prompts)
            reader = {
                "answers": dataclasses.asdict(config),
                "reader": args.reader if model is None or args.reader == "local" else model_settings(model),
                **own_prompts(prompts),
            }
            judges = {"judge": model_settings(judge), **own_prompts(prompts)} if judge is not None else {}
            how = AnswerRun(args.answer_batch_size, reader, BootstrapConfig(seed=args.seed), judges)
            console.print(answer_table(run_answers(dataset, list(retrievers), out, write, measures, how)))
    written = [name for name in WRITTEN if (out / name).exists()]
    console.print(f"written to {out}: {', '.join(written)}", highlight=False)
    return 0


def _check_answer_arguments(args: Namespace) -> None:
    """What can be known to be wrong before anything is computed.

    Raises:
        ConfigError: arguments that do not go together.
    """
    for flag, given in (("--judge", args.judge), ("--compare", args.compare), ("--meteor", args.meteor)):
        if given and not args.answer:
            raise ConfigError(f"{flag} is about answers: add --answer, or leave it out")
    if args.compare and not args.judge:
        raise ConfigError("--compare needs a judge: --judge same, or --judge FILE.yaml")
    rows = rows_of(args.retrievers)
    for name in _split(args.retrievers):
        retriever_settings(name)
    if args.compare and args.compare not in rows:
        raise ConfigError(unknown_name("--compare", args.compare, rows))
    if args.answer and args.passages > max(args.ks):
        raise ConfigError(
            f"--passages {args.passages} is more than the {max(args.ks)} hits that a question keeps; "
            f"extend the cut-offs: --ks {[*args.ks, args.passages]}".replace(" [", " '[").replace("]", "]'")
        )


def named_index(args: Namespace, dataset: Dataset, folder: Path) -> tuple[Index, dict[str, float]]:
    """The index that `--index` names, as it is, or one built in `folder`; and the seconds of its stages.

    Raises:
        InputError: the named index is of other documents.
    """
    if args.index:
        if args.index_config:
            raise ConfigError("--index names an index as it is and --index-config how one is built: leave one out")
        index = Index.open(Path(args.index), device=args.device)
        changes = compare(index.documents.hashes, DocumentSet.of(dataset.documents).hashes)
        if changes:
            raise InputError(
                f"{args.index}: is not an index of this corpus ({len(changes.added)} documents are not in it, "
                f"{len(changes.changed)} differ, {len(changes.removed)} are not in the corpus); leave --index out to "
                "build one, or bring it up to date with qgrag index"
            )
        return index, {}
    config = IndexConfig()
    if args.index_config:
        config = from_plain(IndexConfig, load_yaml(Path(args.index_config)), where=args.index_config)
    RunFolder(folder.parent).check(
        {"dataset": dataset_settings(dataset), "config": {"index": config.identity(), "limit": args.limit}}
    )
    report = build_index(dataset.documents, folder, config)
    seconds = {f"index: {stage}": spent for stage, spent in report.seconds.items()}
    return Index.open(folder, device=args.device), seconds


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


def own_prompts(prompts: Prompts) -> dict[str, Any]:
    """What a run records of prompts that are not the package's: their language and fingerprints."""
    config = prompts.config
    if config == PromptConfig():
        return {}
    return {"prompts": {"language": config.language} | {name: prompts[name].fingerprint for name in config.files}}


@contextmanager
def open_judge(args: Namespace, cache: Path, same: CachedLanguageModel | None) -> Iterator[LanguageModel | None]:
    """The judge that `--judge` names: none, the reader's model, or that of a YAML file.

    Args:
        args: as parsed.
        cache: file for its answers where `--llm-cache` names none.
        same: the reader's model.

    Raises:
        ConfigError: `same` is asked for and there is no language model.
    """
    if args.judge is None:
        yield None
        return
    if args.judge == "same":
        if same is None:
            raise ConfigError(f"--judge same needs a language model: {HOW_TO_NAME}")
        yield StopAtBudget(same)
        return
    config = from_plain(LLMConfig, load_yaml(Path(args.judge)), where=args.judge)
    with closing(load_language_model(config, answer_cache(args, cache))) as model:
        yield StopAtBudget(model)


def rows_of(names: str) -> list[str]:
    """The row of each retriever that `--retrievers` names.

    Raises:
        InputError: two of the names give one row.
    """
    rows: list[str] = []
    for name in _split(names):
        row = Path(name).stem if name.endswith((".yaml", ".yml")) else name
        if row in rows:
            raise InputError(f"--retrievers names {row!r} twice; rename one of the files")
        rows.append(row)
    return rows


def _split(names: str) -> list[str]:
    return [name for part in names.split(",") if (name := part.strip())]


def named_retrievers(
    index: Index, names: str, model: LanguageModel | None = None, prompts: Prompts | None = None
) -> dict[str, Retriever]:
    """Retrievers by row name."""
    return {
        row: load_retriever(index, name, model=model, prompts=prompts)
        for row, name in zip(rows_of(names), _split(names), strict=True)
    }
