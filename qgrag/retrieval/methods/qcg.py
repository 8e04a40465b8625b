"""QCG-RAG: retrieve question nodes, walk to their neighbours, rank the chunks that they come from."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from qgrag.errors import ConfigError
from qgrag.graph import Ragged, expand
from qgrag.graph.segments import Pooling, pool_pairs, reduce_segments, top_pairs
from qgrag.index.reader import Index
from qgrag.retrieval.base import Ranking, Retriever, standardise
from qgrag.retrieval.evidence.items import QuestionNodeItem
from qgrag.retrieval.evidence.records import QCGEvidence

SCORE_BYTES = 128 * 2**20


@dataclass(frozen=True)
class QCGConfig:
    """Retrieval on the query-centric graph (QCG-RAG, section 3.4 and appendix B.3).

    The defaults are the ones that measured best; configs/retrieval/qcg-lihuaworld.yaml and qcg-multihop-rag.yaml hold
    the paper's.

    Args:
        nodes: n, question nodes retrieved per query, at most.
        neighbours: k, edges followed per node; at most as many as the index stores.
        hops: h, how far the retrieved nodes are expanded.
        threshold: gamma, smallest cosine + 1 of a retrieved node, from 0 to 2.
        aggregation: how the scores of a chunk's nodes become the chunk's: `mean` is the paper's; `max`, `sum` and
            `top2`, the sum of the two best, do not punish a chunk for bringing more evidence.
        node_lexical_weight: v, weight of the BM25 score of a node's text.
        chunk_lexical_weight: w, weight of the BM25 score of a node's chunk, the best one where it has several.

    With v = w = 0 the score of a node is the paper's cosine. Otherwise it is
    z(cosine) + v z(BM25 of the node) + w z(BM25 of its chunk), z over all nodes, or all chunks, for one query.
    """

    nodes: int = 100
    neighbours: int = 3
    hops: int = 1
    threshold: float = 1.0
    aggregation: Pooling = "top2"
    node_lexical_weight: float = 0.25
    chunk_lexical_weight: float = 1.0

    def __post_init__(self) -> None:
        if self.nodes < 1 or self.neighbours < 1 or self.hops < 0:
            raise ConfigError(
                "qcg: nodes and neighbours must be at least 1 and hops at least 0, "
                f"not {self.nodes}, {self.neighbours} and {self.hops}"
            )
        if not 0 <= self.threshold <= 2:
            raise ConfigError(f"qcg.threshold is a cosine + 1, from 0 to 2, not {self.threshold}")
        if self.node_lexical_weight < 0 or self.chunk_lexical_weight < 0:
            raise ConfigError(
                "qcg.node_lexical_weight and qcg.chunk_lexical_weight must be 0 or more, "
                f"not {self.node_lexical_weight} and {self.chunk_lexical_weight}"
            )

    @property
    def lexical(self) -> bool:
        """Whether BM25 has a part in the scores."""
        return self.node_lexical_weight > 0 or self.chunk_lexical_weight > 0


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
    Config = QCGConfig

    def __init__(self, index: Index, config: QCGConfig | None = None) -> None:
        super().__init__(index)
        self.config = config or QCGConfig()
        self.graph = index.query_graph
        stored = self.graph.neighbours.index.shape[1]
        if self.config.neighbours > stored:
            raise ConfigError(
                f"qcg.neighbours is {self.config.neighbours}, but the index stores {stored} per node; "
                f"lower it, or index again with query_graph.neighbours at {self.config.neighbours}"
            )

    def rank(self, queries: Sequence[str], vectors: Tensor, top_k: int) -> Ranking:
        found = self.find_nodes(queries, vectors)
        chunks, scores = self.rank_chunks(found, len(queries), top_k)
        evidence, brought = self._evidence(found, chunks)
        return Ranking(chunks, scores, evidence, brought)

    def find_nodes(self, queries: Sequence[str], vectors: Tensor) -> FoundNodes:
        """Steps 1 and 2: Q*, the retrieved nodes and their h-hop neighbours.

        Scores of all nodes are held for as many queries at once as fit `SCORE_BYTES`.
        """
        if self.graph.vectors.approximate and not self.config.lexical:
            cosine, seeds = self.graph.vectors.search(vectors, self.config.nodes)
            seeds = seeds.masked_fill(cosine + 1 < self.config.threshold, -1)
            query, node, hop = self._expand(seeds)
            return FoundNodes(query, node, hop, (vectors[query] * self.graph.vectors.vectors[node].cpu()).sum(1))
        rows = max(1, SCORE_BYTES // (4 * max(1, self.graph.size)))
        blocks = []
        for start in range(0, len(queries), rows):
            block = self._find_block(queries[start : start + rows], vectors[start : start + rows])
            blocks.append(block._replace(query=block.query + start))
        return FoundNodes(*(torch.cat(parts) for parts in zip(*blocks)))

    def _find_block(self, queries: Sequence[str], vectors: Tensor) -> FoundNodes:
        nodes = self.graph.vectors.vectors
        cosine = (vectors.to(nodes.device) @ nodes.T).cpu()
        score = self._mix(queries, cosine) if self.config.lexical else cosine
        allowed = score.masked_fill(cosine + 1 < self.config.threshold, -torch.inf)
        best, seeds = allowed.topk(min(self.config.nodes, self.graph.size), dim=1)
        query, node, hop = self._expand(seeds.masked_fill(best == -torch.inf, -1))
        return FoundNodes(query, node, hop, score[query, node])

    def _mix(self, queries: Sequence[str], cosine: Tensor) -> Tensor:
        c = self.config
        mixed = standardise(cosine)
        if c.node_lexical_weight:
            mixed += c.node_lexical_weight * standardise(self.graph.lexical.scores(queries))
        if c.chunk_lexical_weight:
            node, chunk = self.graph.membership
            of_chunk = standardise(self.index.lexical.scores(queries))
            mixed += c.chunk_lexical_weight * reduce_segments(of_chunk[:, chunk], node, self.graph.size, "max", dim=1)
        return mixed

    def _expand(self, seeds: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Query, node and hop, int64 [M], of seeds int64 [B, n] padded with -1 and their neighbours."""
        present = seeds >= 0
        expansion = expand(
            self.graph.neighbours.index[:, : self.config.neighbours],
            Ragged.from_batch(seeds[present], present.nonzero()[:, 0], len(seeds)),
            self.config.hops,
        )
        return expansion.nodes.batch(), expansion.nodes.values, expansion.hop

    def rank_chunks(self, found: FoundNodes, queries: int, top_k: int) -> tuple[Tensor, Tensor]:
        """Step 3: s(c) over the found nodes of each chunk; int64 and float32 [queries, K]."""
        source, chunk = self.graph.chunks_of.gather(found.node)
        query, chunk, score = pool_pairs(
            found.query[source], chunk, found.score[source], len(self.index.chunks), self.config.aggregation
        )
        return top_pairs(query, chunk, score, queries, top_k)

    def _evidence(
        self, found: FoundNodes, chunks: Tensor
    ) -> tuple[list[QCGEvidence], list[dict[int, list[QuestionNodeItem]]]]:
        graph, index = self.graph, self.index
        wanted = [set(row) for row in chunks.tolist()]
        retrieved = found.query[found.hop == 0].bincount(minlength=len(wanted)).tolist()
        expanded = found.query[found.hop > 0].bincount(minlength=len(wanted)).tolist()
        brought: list[dict[int, list[QuestionNodeItem]]] = [{} for _ in wanted]
        pairs = graph.pairs.take(graph.first_pair[found.node].numpy()).to_pylist()
        for q, node, hop, score, pair in zip(*(column.tolist() for column in found), pairs, strict=True):
            for chunk in graph.chunks_of.row(node).tolist():
                if chunk in wanted[q]:
                    item = QuestionNodeItem(
                        f"{index.chunks[pair['chunk']].id}-{pair['number']}",
                        pair["question"],
                        pair["answer"],
                        pair["sentence"],
                        hop,
                        score,
                        node_row=node,
                        chunk_row=pair["chunk"],
                    )
                    brought[q].setdefault(chunk, []).append(item)
        for items in brought:
            for nodes in items.values():
                nodes.sort(key=lambda item: (-item.score, item.id))
        return [QCGEvidence(*counts) for counts in zip(retrieved, expanded, strict=True)], brought
