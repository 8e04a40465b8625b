"""`qgrag retrieve`: questions to ranked chunks."""

import json
from collections.abc import Sequence
from pathlib import Path

from jsonargparse import ArgumentParser
from rich.console import Console
from rich.markup import escape

from qgrag.cli.parsing import command_parser
from qgrag.corpus.queries import Query, read_queries
from qgrag.errors import InputError
from qgrag.index.reader import Index
from qgrag.retrieval.registry import RETRIEVERS, load_retriever
from qgrag.retrieval.results import RetrievalResult

EXAMPLES = """Ask an index questions.

  qgrag retrieve my-index "Who founded the conservatory?"
  qgrag retrieve my-index --retriever bm25 --top-k 3 "a question" "another"
  qgrag retrieve my-index --queries q.jsonl --out hits.jsonl --top-k 10
"""


def make_parser() -> ArgumentParser:
    parser = command_parser("retrieve", EXAMPLES)
    parser.add_argument("index", type=str, help="folder of an index")
    parser.add_argument("questions", type=str, nargs="*", help="questions, each in quotes")
    parser.add_argument(
        "--queries", type=str | None, default=None, help='JSON lines with "question" and, if wanted, "id"'
    )
    parser.add_argument("--out", type=str | None, default=None, help="write JSON lines here instead of printing")
    parser.add_argument(
        "--retriever",
        type=str,
        default="qcg",
        help=f"{', '.join(RETRIEVERS)}, or a YAML file of configs/retrieval",
    )
    parser.add_argument("--top-k", type=int, default=5, help="chunks a question")
    parser.add_argument("--batch-size", type=int, default=256, help="questions scored together; bounds memory")
    parser.add_argument("--device", type=str, default="auto", help="auto, cpu, cuda, cuda:1, ...")
    parser.add_argument("--explain", action="store_true", help="print the evidence of each hit")
    return parser


def run(arguments: Sequence[str]) -> int:
    args = make_parser().parse_args(arguments)
    queries = [Query(str(i), text) for i, text in enumerate(args.questions)]
    if args.queries:
        queries += read_queries(Path(args.queries))
    if not queries:
        raise InputError("no question: give some in quotes, or --queries FILE")
    index = Index.open(args.index, device=args.device)
    retriever = load_retriever(index, args.retriever)
    results = retriever.retrieve([q.text for q in queries], top_k=args.top_k, batch_size=args.batch_size)
    if args.out:
        write_results(Path(args.out), queries, results)
        Console(stderr=True).print(f"{len(results)} results written to {escape(args.out)}", highlight=False)
    else:
        for result in results:
            show_result(Console(), result, explain=args.explain)
    return 0


def write_results(path: Path, queries: Sequence[Query], results: Sequence[RetrievalResult]) -> None:
    """One JSON object a line: the query's id and everything in its `RetrievalResult`."""
    partial = path.with_name(path.name + ".partial")
    with partial.open("w", encoding="utf-8") as file:
        for query, result in zip(queries, results):
            file.write(json.dumps({"id": query.id, **result.to_dict()}, ensure_ascii=False) + "\n")
    partial.replace(path)


def show_result(console: Console, result: RetrievalResult, *, explain: bool) -> None:
    console.print(f"\n[bold]{escape(result.query)}[/]  [dim]({result.retriever})[/]", highlight=False)
    if not result.hits:
        console.print("  no chunk found", highlight=False)
    for rank, hit in enumerate(result.hits, start=1):
        names = ", ".join(hit.document_ids)
        console.print(
            f"{rank:>3}. [cyan]{escape(names)}[/] [dim]characters {hit.start}-{hit.end}[/]  {hit.score:.3f}",
            highlight=False,
        )
        text = " ".join(hit.text.split())
        console.print(f"     {escape(text[:240])}{'…' if len(text) > 240 else ''}", highlight=False)
        if explain:
            for item in hit.evidence:
                console.print(f"     [dim]{escape(json.dumps(item, ensure_ascii=False))}[/]", highlight=False)
