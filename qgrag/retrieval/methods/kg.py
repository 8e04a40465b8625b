"""LLM + graph: the triples around a query's entities, and the chunks that say them."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import torch
from torch import Tensor

from qgrag.errors import ConfigError
from qgrag.graph import to_csr
from qgrag.graph.segments import pool_pairs, top_pairs, top_per_group
from qgrag.index.reader import Index
from qgrag.retrieval.base import Ranking, Retriever
from qgrag.retrieval.evidence.items import TripleItem
from qgrag.retrieval.evidence.named_triples import extended, sourced_triples
from qgrag.retrieval.evidence.records import KGEvidence
from qgrag.retrieval.graph_steps import (
    LinkedQueries,
    OneHop,
    dense_fallback,
    link_entities,
    one_hop,
    vectors_of_triples,
)
from qgrag.retrieval.linking.linker import EntityLinker, EntityLinkerConfig
from qgrag.retrieval.steps.protocols import QueryEntities


@dataclass(frozen=True)
class KGConfig:
    """Args:
    max_triples: triples looked at of an entity, those whose relation is most similar to the query.
    triples: triples kept of a query, those whose text is most similar to it.
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


class KGRetriever(Retriever):
    """The graph baseline of QMKGF: semantic search among the triples of the entities that a query names.

    A chunk scores as its best triple. Its `triples` in the evidence are what a reader gets (LLM + graph); the chunks
    are for re-ranking (LLM + graph + rerank) and for comparison with other retrievers.

    Args:
        index: with a knowledge graph.
        config: see there.
        entities: takes names from queries in place of the graph's own names.
    """

    name = "kg"
    reads = "views"

    def __init__(self, index: Index, config: KGConfig | None = None, *, entities: QueryEntities | None = None) -> None:
        super().__init__(index)
        self.config = config or KGConfig()
        self.graph = index.knowledge_graph
        self._entities = entities
        self._csr = to_csr(self.graph.edge_index, num_nodes=self.graph.num_entities, undirected=True)

    @cached_property
    def _linker(self) -> EntityLinker:
        return EntityLinker(self.graph, self.config.linking)

    def rank(self, queries: Sequence[str], vectors: Tensor | None, top_k: int) -> Ranking:
        assert vectors is not None
        relations = vectors @ self.graph.relation_vectors.T
        linked = link_entities(queries, self._linker, self.index.embedder.encode, self._entities)
        hop = one_hop(
            self._csr,
            linked.nodes,
            lambda query, triple: relations[query, self.graph.relation_ids[triple]],
            self.config.max_triples,
        )
        query, triple, score = self._best_triples(hop, vectors)
        owner, chunk = self.graph.triple_chunks.gather(triple)
        pooled = pool_pairs(query[owner], chunk, score[owner], len(self.index.chunks), "max")
        chunks, scores = top_pairs(*pooled, len(queries), top_k)
        evidence, brought = self._evidence(linked, query, triple, score, chunks)
        ranking = Ranking(chunks, scores, evidence, brought)
        return dense_fallback(ranking, linked.linked, vectors, self.index.passages, top_k, "triple")

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
