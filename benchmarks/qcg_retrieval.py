"""QCG retrieval in batches beside the same algorithm query by query with networkx, encoder excluded.

    python benchmarks/qcg_retrieval.py --index runs/2wiki/index --questions questions.jsonl
    python benchmarks/qcg_retrieval.py --synthetic 100000 --device cuda

Both sides answer the same queries in turn, several rounds; the ratio is the median of the rounds' ratios, and the
chunks that they return are compared in the same run.
"""

import argparse
import json
import statistics
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch

from qgrag.corpus.queries import read_queries
from qgrag.graph import knn_graph
from qgrag.index.lexical import LexicalConfig, LexicalIndex
from qgrag.index.query_graph import PAIRS_SCHEMA, QueryGraph
from qgrag.index.reader import Index
from qgrag.index.vectors import VectorIndex
from qgrag.retrieval.methods.qcg import QCGConfig, QCGRetriever


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--index", type=Path, help="folder of an index with a query graph")
    source.add_argument("--synthetic", type=int, metavar="NODES", help="random unit vectors in clusters instead")
    parser.add_argument("--questions", type=Path, help="JSON lines with questions for --index")
    parser.add_argument("--queries", type=int, default=256, help="queries a batch")
    parser.add_argument("--networkx-queries", type=int, default=16, help="queries that networkx answers a round")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--top-k", type=int, default=5)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--out", type=Path, help="write the figures here as JSON")
    args = parser.parse_args()

    if args.synthetic:
        index, vectors = synthetic(args.synthetic, args.queries, args.device)
    else:
        index, vectors = on_disk(args.index, args.questions, args.queries, args.device)
    figures = measure(index, vectors, args)
    print(json.dumps(figures, indent=1))
    if args.out:
        args.out.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")


def measure(index: Any, vectors: torch.Tensor, args: argparse.Namespace) -> dict[str, Any]:
    config = QCGConfig(nodes=15, aggregation="mean", node_lexical_weight=0.0, chunk_lexical_weight=0.0)
    retriever = QCGRetriever(index, config)

    def batched() -> torch.Tensor:
        return retriever.rank_chunks(retriever.find_nodes([""] * len(vectors), vectors), len(vectors), args.top_k)[0]

    chunks = batched()
    figures: dict[str, Any] = {
        "nodes": index.query_graph.size,
        "queries": len(vectors),
        "device": args.device,
        "parameters": {"n": config.nodes, "k": config.neighbours, "h": config.hops},
    }
    peers = networkx_peers(index, vectors, args, config)
    ratios: dict[str, list[float]] = {name: [] for name in peers}
    rates: dict[str, list[float]] = {"batched": [], **{name: [] for name in peers}}
    for _ in range(args.rounds):
        ours = len(vectors) / seconds(batched, args.device)
        rates["batched"].append(ours)
        for name, peer in peers.items():
            rate = args.networkx_queries / seconds(peer, "cpu")
            rates[name].append(rate)
            ratios[name].append(ours / rate)
    figures["queries_per_second"] = {name: round(statistics.median(values), 1) for name, values in rates.items()}
    figures["ratio"] = {name: round(statistics.median(values), 1) for name, values in ratios.items()}
    for name, peer in peers.items():
        expected = peer()
        rows = [[c for c in row if c >= 0] for row in chunks[: len(expected)].tolist()]
        figures[f"same_chunks_as_{name}"] = f"{sum(a == b for a, b in zip(rows, expected))} of {len(expected)}"
    return figures


def networkx_peers(
    index: Any, vectors: torch.Tensor, args: argparse.Namespace, config: QCGConfig
) -> dict[str, Callable[[], list[list[int]]]]:
    """The peers, or none where networkx is not installed."""
    try:
        from benchmarks.qcg_networkx import NetworkxRetriever, to_networkx
    except ImportError as error:
        print(f"without the networkx side: {error}")
        return {}
    graph = to_networkx(index.query_graph)
    queries = vectors[: args.networkx_queries].cpu().numpy()
    plain = NetworkxRetriever(graph, config)
    mixed = NetworkxRetriever(graph, config, index.query_graph.vectors.vectors.cpu().numpy())
    return {
        "networkx": lambda: plain.retrieve(queries, args.top_k),
        "networkx_with_numpy_similarity": lambda: mixed.retrieve(queries, args.top_k),
    }


def seconds(run: Callable[[], Any], device: str) -> float:
    start = time.perf_counter()
    run()
    if device.startswith("cuda"):
        torch.cuda.synchronize()
    return time.perf_counter() - start


def on_disk(folder: Path, questions: Path | None, count: int, device: str) -> tuple[Index, torch.Tensor]:
    """An index, and `count` query vectors: the questions, over and over, each a little apart from the last time."""
    index = Index.open(folder, device=device)
    texts = (
        [query.text for query in read_queries(questions)]
        if questions
        else [chunk.text[:80] for chunk in index.chunks[:count]]
    )
    vectors = index.embedder.encode_queries(texts)
    torch.manual_seed(0)
    repeated = vectors.repeat(-(-count // len(vectors)), 1)[:count]
    noise = torch.randn_like(repeated) * 0.002
    noise[: len(vectors)] = 0
    return index, torch.nn.functional.normalize(repeated + noise, dim=1)


def synthetic(nodes: int, queries: int, device: str, dimension: int = 384) -> tuple[Any, torch.Tensor]:
    """Unit vectors in nodes / 50 clusters, eight nodes a chunk; what an index holds, in memory."""
    torch.manual_seed(0)
    centres = torch.randn(max(1, nodes // 50), dimension)
    owner = torch.randint(len(centres), (nodes + queries,))
    points = torch.nn.functional.normalize(centres[owner] + 0.7 * torch.randn(nodes + queries, dimension), dim=1)
    x = points[:nodes]
    import pyarrow as pa

    chunks = torch.arange(nodes) // 8
    empty = [""] * nodes
    pairs = pa.table(
        {
            "chunk": chunks.numpy(),
            "number": (torch.arange(nodes) % 8).numpy(),
            "node": torch.arange(nodes).numpy(),
            "similarity": torch.ones(nodes).numpy(),
            "question": empty,
            "answer": empty,
            "sentence": empty,
        },
        schema=PAIRS_SCHEMA,
    )
    neighbours = knn_graph(x.to(device), 5)
    graph = QueryGraph(
        pairs,
        [str(i) for i in range(nodes)],
        VectorIndex.exact(x, device) if find_spec("faiss") else VectorIndex(x, None, device),
        type(neighbours)(neighbours.index.cpu(), neighbours.score.cpu()),
        LexicalIndex.build(empty, LexicalConfig()),
    )
    return SimpleNamespace(query_graph=graph, chunks=range(int(chunks[-1]) + 1)), points[nodes:]


if __name__ == "__main__":
    main()
