"""What an index costs beside encoding its passages alone, and its peak memory.

    python benchmarks/indexing.py --dataset 2wikimultihopqa --data DATA/2wikimultihopqa --out runs/indexing.json

Encodes every passage (nothing else), then builds the index in the same process, and prints the time of each stage, the
ratio of the two, and the rate of local Doc2Query. Each step runs in a process of its own for its peak memory.
"""

import argparse
import json
import multiprocessing
import resource
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from qgrag.corpus.chunking import chunk_documents
from qgrag.evaluation.datasets import load_dataset
from qgrag.index.builder import build_index
from qgrag.index.config import IndexConfig
from qgrag.index.reader import Index
from qgrag.models.embedder import LocalEmbedder
from qgrag.models.tokenizer import token_spans
from qgrag.retrieval.registry import load_retriever


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dataset", required=True)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--limit", type=int, help="first documents only, to try the script")
    parser.add_argument("--queries", type=int, default=256)
    parser.add_argument("--index", type=Path, help="where the index is built; a temporary folder if not given")
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()

    with tempfile.TemporaryDirectory() as scratch:
        folder = args.index or Path(scratch) / "index"
        figures = {
            "import and data set only": measured(baseline, args),
            "index": measured(index_and_encode, args, folder),
            "retrieve": measured(retrieve, args, folder),
        }
    print(json.dumps(figures, indent=1))
    if args.out:
        args.out.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")


def measured(step: Callable[..., dict[str, Any]], *arguments: Any) -> dict[str, Any]:
    """Run `step` in a fresh process; its figures, and its peak resident memory in MiB."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(_with_peak, (step, arguments))


def _with_peak(step: Callable[..., dict[str, Any]], arguments: tuple[Any, ...]) -> dict[str, Any]:
    figures = step(*arguments)
    return figures | {"peak_mib": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)}


def documents_of(args: argparse.Namespace) -> list[Any]:
    return list(load_dataset(args.dataset, args.data).documents)[: args.limit]


def baseline(args: argparse.Namespace) -> dict[str, Any]:
    return {"documents": len(documents_of(args))}


def index_and_encode(args: argparse.Namespace, folder: Path) -> dict[str, Any]:
    documents = documents_of(args)
    config = IndexConfig()
    embedder = LocalEmbedder(config.embedder)
    chunks = chunk_documents(documents, config.chunks, token_spans(config.chunks.tokenizer))
    embedder.encode(["warm up"])
    rounds = []
    for part in ("encoding", "plain index", "encoding"):
        start = time.perf_counter()
        if part == "encoding":
            embedder.encode([chunk.passage for chunk in chunks])
        else:
            with tempfile.TemporaryDirectory() as scratch:
                plain = replace(config, query_graph=None, knowledge_graph=None)
                build_index(documents, Path(scratch) / "plain", plain, embedder=LocalEmbedder(config.embedder))
        rounds.append(time.perf_counter() - start)
    encoding = (rounds[0] + rounds[2]) / 2
    report = build_index(documents, folder, config, embedder=embedder)
    stages = report.seconds
    others = sum(stages.values()) - stages["questions"]
    return {
        "chunks": report.counts["chunks"],
        "question_nodes": report.counts["question_nodes"],
        "encoding_alone_s": [round(rounds[0], 1), round(rounds[2], 1)],
        "passage_index_s": round(rounds[1], 1),
        "passage_index_over_encoding": round(rounds[1] / encoding, 2),
        "stages_s": {stage: round(seconds, 1) for stage, seconds in stages.items()},
        "whole_index_without_doc2query_over_encoding": round(others / encoding, 2),
        "doc2query_chunks_per_s": round(report.counts["chunks"] / stages["questions"], 1),
    }


def retrieve(args: argparse.Namespace, folder: Path) -> dict[str, Any]:
    index = Index.open(folder)
    queries = [f"{chunk.title} {chunk.text[:60]}" for chunk in index.chunks[: args.queries]]
    rates = {}
    for name in ("naive", "bm25", "hybrid", "qcg"):
        retriever = load_retriever(index, name)
        vectors = index.embedder.encode_queries(queries)
        retriever.rank(queries, vectors, 5)
        start = time.perf_counter()
        retriever.rank(queries, vectors, 5)
        rates[name] = round(len(queries) / (time.perf_counter() - start))
    return {"queries": len(queries), "queries_per_s": rates}


if __name__ == "__main__":
    main()
