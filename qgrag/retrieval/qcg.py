"""QCG-RAG: retrieve question nodes, walk to their neighbours, rank the chunks that they come from."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor

from qgrag.errors import ConfigError
from qgrag.graph import Ragged, expand
from qgrag.index.reader import Index
from qgrag.retrieval.base import Ranking, Retriever, standardise, top_chunks
from qgrag.retrieval.pooling import pool_pairs, top_pairs


@dataclass(frozen=True)
class QCGConfig:
    """Retrieval on the query-centric graph (QCG-RAG, section 3.4 and appendix B.3).

    Args:
        nodes: n, question nodes retrieved for a query, at most.
        neighbours: k, edges followed from a node; at most as many as the index stores.
        hops: h, how far the retrieved nodes are expanded.
        threshold: gamma, smallest cosine + 1 of a retrieved node, from 0 to 2.
        aggregation: how the scores of a chunk's nodes become the chunk's: `mean` is the paper's; `max` and `sum`
            do not punish a chunk for bringing more evidence.
        lexical_weight: weight of BM25 in a node's score: 0 gives the paper's cosine, otherwise the score is
            z(cosine) + lexical_weight * z(BM25), z over all nodes for one query.
    """

    nodes: int = 15
    neighbours: int = 3
    hops: int = 1
    threshold: float = 1.0
    aggregation: Literal["mean", "max", "sum"] = "mean"
    lexical_weight: float = 0.0

    def __post_init__(self) -> None:
        if self.nodes < 1 or self.neighbours < 1 or self.hops < 0:
            raise ConfigError(
                "qcg: nodes and neighbours must be at least 1 and hops at least 0, "
                f"not {self.nodes}, {self.neighbours} and {self.hops}"
            )
        if not 0 <= self.threshold <= 2:
            raise ConfigError(f"qcg.threshold is a cosine + 1, from 0 to 2, not {self.threshold}")
        if self.lexical_weight < 0:
            raise ConfigError(f"qcg.lexical_weight must be 0 or more, not {self.lexical_weight}")


class FoundNodes(NamedTuple):
    """Question nodes of a batch of queries, ordered by query.

    Args:
        query: int64 [M].
        node: int64 [M].
        hop: int64 [M], 0 for a retrieved node.
        score: float32 [M], what ranks the node's chunks.
    """

    query: Tensor
    node: Tensor
    hop: Tensor
    score: Tensor


class QCGRetriever(Retriever):
    """The paper's steps 1 to 3 for a batch of queries at once; the evidence of a hit is the nodes that brought it."""

    name = "qcg"

    def __init__(self, index: Index, config: QCGConfig | None = None) -> None:
        super().__init__(index)
        self.config = config or QCGConfig()
        self.graph = index.query_graph
        stored = self.graph.neighbours.index.shape[1]
        if self.config.neighbours > stored:
            raise ConfigError(
                f"qcg.neighbours is {self.config.neighbours}, but the index stores {stored} a node; "
                f"lower it, or index again with query_graph.neighbours at {self.config.neighbours}"
            )

    def rank(self, queries: Sequence[str], vectors: Tensor | None, top_k: int) -> Ranking:
        assert vectors is not None
        found = self.find_nodes(queries, vectors)
        chunks, scores = self.rank_chunks(found, len(queries), top_k)
        evidence, brought = self._evidence(found, chunks)
        return Ranking(chunks, scores, evidence, brought)

    def find_nodes(self, queries: Sequence[str], vectors: Tensor) -> FoundNodes:
        """Steps 1 and 2: Q*, the retrieved nodes and their h-hop neighbours."""
        c = self.config
        if c.lexical_weight:
            full = self._mixed_scores(queries, vectors)
            allowed = full.mixed.masked_fill(full.cosine + 1 < c.threshold, -torch.inf)
            seeds, _ = top_chunks(allowed, c.nodes)
        else:
            cosine, seeds = self.graph.vectors.search(vectors, c.nodes)
            seeds = seeds.masked_fill(cosine + 1 < c.threshold, -1)
        present = seeds >= 0
        rows = present.nonzero()[:, 0]
        expansion = expand(
            self.graph.neighbours.index[:, : c.neighbours],
            Ragged.from_batch(seeds[present], rows, len(queries)),
            c.hops,
        )
        query, node = expansion.nodes.batch(), expansion.nodes.values
        if c.lexical_weight:
            score = full.mixed[query, node]
        else:
            score = (vectors[query] * self.graph.vectors.vectors[node].cpu()).sum(1)
        return FoundNodes(query, node, expansion.hop, score)

    def rank_chunks(self, found: FoundNodes, queries: int, top_k: int) -> tuple[Tensor, Tensor]:
        """Step 3: s(c) over the found nodes of each chunk; int64 and float32 [queries, K]."""
        members, ptr = self.graph.chunks_of
        count = ptr[found.node + 1] - ptr[found.node]
        source = torch.repeat_interleave(torch.arange(len(count)), count)
        offset = torch.arange(len(source)) - torch.repeat_interleave(count.cumsum(0) - count, count)
        chunk = members[ptr[found.node[source]] + offset]
        query, chunk, score = pool_pairs(
            found.query[source], chunk, found.score[source], len(self.index.chunks), self.config.aggregation
        )
        return top_pairs(query, chunk, score, queries, top_k)

    def _mixed_scores(self, queries: Sequence[str], vectors: Tensor) -> "_NodeScores":
        nodes = self.graph.vectors.vectors
        cosine = (vectors.to(nodes.device) @ nodes.T).cpu()
        lexical = self.graph.lexical.scores(queries)
        return _NodeScores(cosine, standardise(cosine) + self.config.lexical_weight * standardise(lexical))

    def _evidence(
        self, found: FoundNodes, chunks: Tensor
    ) -> tuple[list[dict[str, Any]], list[dict[int, list[dict[str, Any]]]]]:
        graph, index = self.graph, self.index
        members, ptr = graph.chunks_of
        wanted = [set(row) for row in chunks.tolist()]
        evidence: list[dict[str, Any]] = [{"nodes": 0, "expanded": 0} for _ in wanted]
        brought: list[dict[int, list[dict[str, Any]]]] = [{} for _ in wanted]
        pairs = graph.pairs.take(graph.first_pair[found.node].numpy()).to_pylist()
        for q, node, hop, score, pair in zip(
            found.query.tolist(), found.node.tolist(), found.hop.tolist(), found.score.tolist(), pairs
        ):
            evidence[q]["expanded" if hop else "nodes"] += 1
            for chunk in members[ptr[node] : ptr[node + 1]].tolist():
                if chunk in wanted[q]:
                    brought[q].setdefault(chunk, []).append(
                        {
                            "kind": "question node",
                            "id": f"{index.chunks[pair['chunk']].id}-{pair['number']}",
                            "question": pair["question"],
                            "answer": pair["answer"],
                            "sentence": pair["sentence"],
                            "hop": hop,
                            "score": score,
                        }
                    )
        for items in brought:
            for nodes in items.values():
                nodes.sort(key=lambda item: (-item["score"], item["id"]))
        return evidence, brought


class _NodeScores(NamedTuple):
    cosine: Tensor
    mixed: Tensor
