"""QCG-RAG's retrieval written query by query with networkx: what the batched retriever is compared with."""

from collections import defaultdict
from collections.abc import Iterable

import networkx as nx
import numpy as np

from qgrag.index.query_graph import QueryGraph
from qgrag.retrieval.methods.qcg import QCGConfig


def to_networkx(graph: QueryGraph) -> nx.DiGraph:
    """Question nodes with their vectors, edges in order of similarity, and each node's chunks."""
    out = nx.DiGraph()
    members, ptr = (graph.chunks_of.values.tolist(), graph.chunks_of.ptr.tolist())
    for node, vector in enumerate(graph.vectors.vectors.cpu().numpy()):
        out.add_node(node, vector=vector, chunks=members[ptr[node] : ptr[node + 1]])
    for node, row in enumerate(graph.neighbours.index.tolist()):
        out.add_edges_from((node, other) for other in row if other >= 0)
    return out


class NetworkxRetriever:
    """One query at a time.

    Args:
        graph: see `to_networkx`.
        config: parameters; both lexical weights have to be 0.
        matrix: float32 [N, d]: where given, a node's similarity comes from one matrix product a query instead of
            the vector stored with the node.
    """

    def __init__(self, graph: nx.DiGraph, config: QCGConfig, matrix: np.ndarray | None = None) -> None:
        self.graph = graph
        self.config = config
        self.matrix = matrix

    def retrieve(self, queries: np.ndarray, top_k: int) -> list[list[int]]:
        """Chunks of each query, best first."""
        return [self.rank(query, top_k) for query in queries]

    def rank(self, query: np.ndarray, top_k: int) -> list[int]:
        c = self.config
        similarity = self.similarities(query)
        best = sorted(similarity, key=lambda node: (-similarity[node], node))[: c.nodes]
        found = self.expand(node for node in best if similarity[node] + 1 >= c.threshold)
        scores = defaultdict(list)
        for node in found:
            for chunk in self.graph.nodes[node]["chunks"]:
                scores[chunk].append(similarity[node])
        pool = {"mean": lambda s: sum(s) / len(s), "max": max, "sum": sum, "top2": lambda s: sum(sorted(s)[-2:])}[
            c.aggregation
        ]
        pooled = {chunk: pool(values) for chunk, values in scores.items()}
        return sorted(pooled, key=lambda chunk: (-pooled[chunk], chunk))[:top_k]

    def similarities(self, query: np.ndarray) -> dict[int, float]:
        if self.matrix is not None:
            return dict(enumerate((self.matrix @ query).tolist()))
        return {node: float(vector @ query) for node, vector in self.graph.nodes(data="vector")}

    def expand(self, seeds: Iterable[int]) -> set[int]:
        found = set(seeds)
        frontier = found
        for _ in range(self.config.hops):
            frontier = {
                other for node in frontier for other in list(self.graph.successors(node))[: self.config.neighbours]
            } - found
            found = found | frontier
        return found
