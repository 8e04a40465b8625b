"""`qgrag index`: documents to an index."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from jsonargparse import ArgumentParser, Namespace
from rich.console import Console

from qgrag.cli.exit_codes import DONE, PARTLY
from qgrag.cli.llm_arguments import add_llm_arguments, with_llm_arguments
from qgrag.cli.outputs import check_output_folder
from qgrag.cli.parsing import command_parser, validate_config_files
from qgrag.cli.show import show_problems
from qgrag.cli.show_build import show_plan, show_report
from qgrag.cli.unfinished import keep_unfinished
from qgrag.corpus.readers import read_corpus
from qgrag.errors import ConfigError
from qgrag.index.config import IndexConfig

EXAMPLES = """Build an index from documents, or bring the index in OUT up to date. Only what is new is processed, and
what is gone is dropped. The same command continues a build that was stopped.

  qgrag index notes/ --out my-index                        a folder of .txt, .md, .pdf, .docx, .html
  qgrag index corpus.jsonl --out my-index --dry-run        what would be done
  qgrag index notes/ --out my-index --config my.yaml --chunks.tokens 512
  qgrag index notes/ --out my-index --config configs/index/llm.yaml --llm-base-url http://localhost:8000/v1 \\
    --llm-model NAME --max-calls 1000                      pairs and facts by a language model
"""


def make_parser() -> ArgumentParser:
    parser = command_parser("index", EXAMPLES)
    parser.add_argument("documents", type=str, help="a folder, or a file in a format that qgrag reads")
    parser.add_argument("--out", type=str, required=True, help="folder of the index")
    parser.add_argument("--config", action="config", help="YAML file with the keys below; flags win over it")
    parser.add_argument("--format", type=str, default="auto", help="format of DOCUMENTS; auto recognises it")
    parser.add_argument(
        "--encoding", type=str | None, default=None, help="text encoding of DOCUMENTS if it is neither UTF-8 nor UTF-16"
    )
    parser.add_argument(
        "--on-error", choices=["stop", "skip"], default="stop", help="what to do with an input that cannot be read"
    )
    parser.add_argument("--dry-run", action="store_true", help="show what would be done and spent; write nothing")
    add_llm_arguments(parser)
    parser.add_argument(
        "--no-cache",
        action="store_true",
        help="keep no answers of the language model and ask for everything anew, to measure; a build that is stopped "
        "then keeps only whole batches of chunks",
    )
    parser.add_class_arguments(IndexConfig)
    return parser


def run(arguments: Sequence[str]) -> int:
    parser = make_parser()
    validate_config_files(arguments, IndexConfig)
    args = parser.instantiate_classes(parser.parse_args(arguments))
    from qgrag.index.builder import build_index, plan_index

    config = config_from(args)
    console = Console()
    check_output_folder(args.out)
    corpus = read_corpus(Path(args.documents), format=args.format, encoding=args.encoding, on_error=args.on_error)
    show_problems(console, corpus.errors, "broken", most=len(corpus.errors))
    show_problems(console, [problem for problem in corpus.problems if problem.kind != "error"])
    if args.dry_run:
        show_plan(console, plan_index(corpus.documents, args.out, config, llm_cache=not args.no_cache))
        return PARTLY if corpus.errors else DONE
    report = build_index(corpus.documents, args.out, config, llm_cache=not args.no_cache)
    show_report(console, report)
    failed = [*map(str, corpus.errors), *report.failures]
    return keep_unfinished(report.path, "index", arguments, failed)


def config_from(args: Namespace) -> IndexConfig:
    values: dict[str, Any] = {field.name: args[field.name] for field in dataclasses.fields(IndexConfig)}
    values["llm"] = with_llm_arguments(values["llm"], args)
    try:
        config = IndexConfig(**values)
    except ValueError as error:
        raise ConfigError(str(error)) from error
    if (args.llm_model or args.llm_base_url) and not config.asks_llm:
        raise ConfigError(
            "a language model is named, but nothing asks it: set query_graph.generator or knowledge_graph.extractor, "
            "for example with --config configs/index/llm.yaml"
        )
    return config
