"""`qgrag retrieve`: questions to ranked chunks."""

from collections.abc import Sequence
from pathlib import Path

from jsonargparse import ArgumentParser, Namespace
from rich.console import Console
from rich.markup import escape

from qgrag.cli.outputs import check_output_file
from qgrag.cli.parsing import command_parser, options_first
from qgrag.cli.show_results import show_result
from qgrag.corpus.queries import Query, read_queries
from qgrag.errors import InputError
from qgrag.files import write_json_lines
from qgrag.index.reader import Index
from qgrag.retrieval.evidence.explain_html import write_page
from qgrag.retrieval.registry import RETRIEVERS, load_retriever

EXAMPLES = """Ask an index questions.

  qgrag retrieve my-index "Who founded the conservatory?"
  qgrag retrieve my-index --retriever bm25 --top-k 3 "a question" "another"
  qgrag retrieve my-index --queries q.jsonl --out hits.jsonl --top-k 10
  qgrag retrieve my-index --retriever dual --explain-html why.html "Where was the director of Solaris born?"
"""


def make_parser() -> ArgumentParser:
    parser = command_parser("retrieve", EXAMPLES)
    add_query_arguments(parser)
    parser.add_argument("--explain-html", type=str | None, default=None, help="draw the evidence on a page, this file")
    return parser


def add_query_arguments(parser: ArgumentParser) -> None:
    """What every command takes that puts questions to an index."""
    parser.add_argument("index", type=str, help="folder of an index")
    parser.add_argument("questions", type=str, nargs="*", help="questions, each in quotes")
    parser.add_argument(
        "--queries", type=str | None, default=None, help='file of JSON lines with "question" and, optionally, "id"'
    )
    parser.add_argument("--out", type=str | None, default=None, help="write JSON lines here instead of printing")
    parser.add_argument(
        "--retriever",
        type=str,
        default="qcg",
        help=f"{', '.join(RETRIEVERS)}, or a YAML file of configs/retrieval",
    )
    parser.add_argument("--top-k", type=int, default=5, help="number of chunks per question")
    parser.add_argument(
        "--batch-size", type=int, default=256, help="number of questions that are scored together; bounds memory"
    )
    parser.add_argument("--device", type=str, default="auto", help="auto, cpu, cuda, cuda:1, ...")
    parser.add_argument("--explain", action="store_true", help="print the evidence as a person reads it")


def run(arguments: Sequence[str]) -> int:
    parser = make_parser()
    args = parser.parse_args(options_first(parser, arguments))
    queries = given_queries(args)
    check_output_file(args.out, "--out")
    check_output_file(args.explain_html, "--explain-html")
    index = Index.open(args.index, device=args.device)
    retriever = load_retriever(index, args.retriever)
    results = retriever.retrieve([q.text for q in queries], top_k=args.top_k, batch_size=args.batch_size)
    if args.explain_html:
        write_page(Path(args.explain_html), results)
        Console(stderr=True).print(f"evidence drawn in {escape(args.explain_html)}", highlight=False)
    if args.out:
        write_json_lines(
            Path(args.out), ({"id": query.id, **result.to_dict()} for query, result in zip(queries, results))
        )
        Console(stderr=True).print(f"{len(results)} results written to {escape(args.out)}", highlight=False)
    else:
        for result in results:
            show_result(Console(), result, explain=args.explain)
    return 0


def given_queries(args: Namespace) -> list[Query]:
    """The questions of the command line, then those of `--queries`.

    Raises:
        InputError: there is none.
    """
    queries = [Query(str(i), text) for i, text in enumerate(args.questions)]
    if args.queries:
        queries += read_queries(Path(args.queries))
    if not queries:
        raise InputError("no question: give some in quotes, or --queries FILE")
    return queries
