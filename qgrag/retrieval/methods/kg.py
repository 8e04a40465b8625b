"""LLM + graph: the triples around a query's entities, and the chunks that say them."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from qgrag.errors import ConfigError
from qgrag.graph.segments import pool_pairs, top_pairs, top_per_group
from qgrag.index.reader import Index
from qgrag.retrieval.base import Ranking
from qgrag.retrieval.evidence.items import TripleItem
from qgrag.retrieval.evidence.named_triples import extended, sourced_triples
from qgrag.retrieval.evidence.records import KGEvidence
from qgrag.retrieval.graph_retriever import GraphRetriever
from qgrag.retrieval.linking.linker import EntityLinkerConfig
from qgrag.retrieval.steps.linked_queries import LinkedQueries
from qgrag.retrieval.steps.one_hop import OneHop, one_hop
from qgrag.retrieval.steps.protocols import QueryEntities
from qgrag.retrieval.steps.stored_vectors import vectors_of_triples


@dataclass(frozen=True)
class KGConfig:
    """Args:
    max_triples: triples looked at per entity, those whose relation is most similar to the query.
    triples: triples kept per query, those whose text is most similar to it.
    linking: how names become entities.
    """

    max_triples: int = 50
    triples: int = 30
    linking: EntityLinkerConfig = field(default_factory=EntityLinkerConfig)

    def __post_init__(self) -> None:
        if self.max_triples < 1 or self.triples < 1:
            raise ConfigError(
                f"kg.max_triples and kg.triples must be at least 1, not {self.max_triples} and {self.triples}"
            )


class KGRetriever(GraphRetriever):
    """The graph baseline of QMKGF: semantic search among the triples of the entities that a query names.

    A chunk scores as its best triple. Its `triples` in the evidence are what a reader gets (LLM + graph); the chunks
    are for re-ranking (LLM + graph + rerank) and for comparison with other retrievers.

    Args:
        index: with a knowledge graph.
        config: see there.
        entities: takes names from queries in place of the graph's own names.
    """

    name = "kg"
    Config = KGConfig
    looks_for = "triple"
    reads = "views"

    def __init__(self, index: Index, config: KGConfig | None = None, *, entities: QueryEntities | None = None) -> None:
        self.config = config or KGConfig()
        super().__init__(index, self.config.linking, entities)

    def rank(self, queries: Sequence[str], vectors: Tensor, top_k: int) -> Ranking:
        linked = self.link(queries)
        hop = one_hop(self.edges, linked.nodes, self.relation_similarity(vectors), self.config.max_triples)
        query, triple, score = self._best_triples(hop, vectors)
        owner, chunk = self.graph.triple_chunks.gather(triple)
        pooled = pool_pairs(query[owner], chunk, score[owner], len(self.index.chunks), "max")
        chunks, scores = top_pairs(*pooled, len(queries), top_k)
        evidence, brought = self._evidence(linked, query, triple, score, chunks)
        return self.with_fallback(Ranking(chunks, scores, evidence, brought), linked, vectors, top_k)

    def _best_triples(self, hop: OneHop, vectors: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Query, triple and cosine of the triples kept, by query, the best first."""
        size = max(1, self.graph.num_triples)
        key = torch.unique(hop.query * size + hop.triple)
        query, triple = key // size, key % size
        rows, place = torch.unique(triple, return_inverse=True)
        if not len(rows):
            return query, triple, vectors.new_empty(0)
        made = vectors_of_triples(self.graph, rows, self.index.embedder.encode)
        score = (made[place] * vectors[query]).sum(1)
        kept = top_per_group(query, score, self.config.triples)
        return query[kept], triple[kept], score[kept]

    def _evidence(
        self, linked: LinkedQueries, query: Tensor, triple: Tensor, score: Tensor, chunks: Tensor
    ) -> tuple[list[KGEvidence], list[dict[int, list[TripleItem]]]]:
        triples: list[list[TripleItem]] = [[] for _ in linked.links]
        brought: list[dict[int, list[TripleItem]]] = [{row: [] for row in rows if row >= 0} for rows in chunks.tolist()]
        named = sourced_triples(self.graph, self.index, triple)
        for q, row, similarity in zip(query.tolist(), triple.tolist(), score.tolist(), strict=True):
            item = extended(named[row], TripleItem, similarity=similarity)
            triples[q].append(item)
            for chunk in dict.fromkeys(item.chunk_rows):
                if chunk in brought[q]:
                    brought[q][chunk].append(item)
        evidence = [KGEvidence(tuple(links), tuple(row)) for links, row in zip(linked.links, triples, strict=True)]
        return evidence, brought
