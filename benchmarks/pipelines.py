"""Retrievers on an index in batches of several sizes: queries a second and peak memory, the encoder left out.

    python benchmarks/pipelines.py --index runs/2wiki/index --questions questions.jsonl --out pipelines.json

What a retriever asks of the encoder is answered from a table that a first pass over the same queries fills, so that
the clock sees the graph, the search and the evidence. The questions are repeated until a batch is full.
"""

import argparse
import json
import os
import statistics
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from _timing import peak_memory, synchronize
from torch import Tensor

from qgrag.corpus.queries import read_queries
from qgrag.index.reader import Index
from qgrag.retrieval.base import Retriever
from qgrag.retrieval.registry import load_retriever


class RememberedEncoder:
    """Vectors of an embedder, each text encoded once."""

    def __init__(self, embedder: Any) -> None:
        self.embedder = embedder
        self.name, self.fingerprint, self.dimension = embedder.name, embedder.fingerprint, embedder.dimension
        self.known: dict[tuple[bool, str], Tensor] = {}

    def encode(self, texts: Sequence[str], *, description: str = "") -> Tensor:
        return self._all(texts, is_query=False)

    def encode_queries(self, texts: Sequence[str]) -> Tensor:
        return self._all(texts, is_query=True)

    def _all(self, texts: Sequence[str], *, is_query: bool) -> Tensor:
        new = [text for text in dict.fromkeys(texts) if (is_query, text) not in self.known]
        if new:
            made = self.embedder.encode_queries(new) if is_query else self.embedder.encode(new)
            self.known |= {(is_query, text): row for text, row in zip(new, made, strict=True)}
        return torch.stack([self.known[is_query, text] for text in texts]) if texts else self.embedder.encode([])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--index", type=Path, required=True, help="folder of an index")
    parser.add_argument("--questions", type=Path, required=True, help="JSON lines with questions")
    parser.add_argument("--retrievers", default="naive,bm25,hybrid,dual,fg,qmkgf", help="names or YAML files")
    parser.add_argument("--batches", default="1,32,256", help="queries a batch")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--top-k", type=int, default=8)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--out", type=Path, help="write the figures here as JSON")
    args = parser.parse_args()

    index = Index.open(args.index, device=args.device)
    index.embedder = RememberedEncoder(index.embedder)
    texts = [query.text for query in read_queries(args.questions)]
    figures: dict[str, Any] = {
        "index": index.manifest.counts,
        "questions": len(texts),
        "device": args.device,
        "threads": torch.get_num_threads(),
        "load_average": os.getloadavg()[0],
        "retrievers": {},
    }
    for name in args.retrievers.split(","):
        retriever = load_retriever(index, name)
        rank(retriever, texts, args.top_k)
        rows = [measure(retriever, texts, int(size), args) for size in args.batches.split(",")]
        figures["retrievers"][name] = rows
        for row in rows:
            print(name, json.dumps(row), flush=True)
    if args.out:
        args.out.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")


def measure(retriever: Retriever, texts: Sequence[str], size: int, args: argparse.Namespace) -> dict[str, Any]:
    """Median of the rounds; each ranks one batch, or, for single queries, another query each time."""
    device = torch.device(args.device)
    batches = [[texts[(turn + i) % len(texts)] for i in range(size)] for turn in range(args.rounds)]
    peak, _ = peak_memory(lambda: rank(retriever, batches[0], args.top_k), device)
    wall, busy = [], []
    for batch in batches:
        began, worked = time.perf_counter(), time.process_time()
        rank(retriever, batch, args.top_k)
        synchronize(device)
        wall.append(time.perf_counter() - began)
        busy.append(time.process_time() - worked)
    return {
        "batch": size,
        "queries_per_second": round(size / statistics.median(wall), 1),
        "cpu_ms_a_query": round(1000 * statistics.median(busy) / size, 2),
        "peak_mb": round(peak, 1),
    }


def rank(retriever: Retriever, texts: Sequence[str], top_k: int) -> None:
    vectors = retriever.index.embedder.encode_queries(texts) if retriever.needs_vectors else None
    retriever.rank(texts, vectors, top_k)


if __name__ == "__main__":
    main()
