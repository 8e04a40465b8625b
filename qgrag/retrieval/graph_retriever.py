"""Base of the retrievers on the knowledge graph: the entities of queries, triples around them, and dense fallback."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import ClassVar

import torch
from torch import Tensor

from qgrag.graph import CSR, to_csr
from qgrag.index.reader import Index
from qgrag.retrieval.base import Maker, Ranking, Retriever
from qgrag.retrieval.linking.linker import EntityLinker, EntityLinkerConfig
from qgrag.retrieval.steps.linked_queries import LinkedQueries, link_entities
from qgrag.retrieval.steps.llm_query_entities import LLMQueryEntities
from qgrag.retrieval.steps.protocols import QueryEntities


class GraphRetriever(Retriever):
    """A retriever that starts from the entities that queries name.

    Args:
        index: with a knowledge graph.
        linking: how names become entities.
        entities: takes names from queries in place of the graph's own names.

    Raises:
        MissingComponentError: the index has no knowledge graph.
    """

    steps: ClassVar[Mapping[str, Maker]] = {"entities": lambda model, prompts, config: LLMQueryEntities(model, prompts)}
    looks_for: ClassVar[str]
    """What the method looks for around an entity, as the evidence of a dense fallback says it."""

    def __init__(self, index: Index, linking: EntityLinkerConfig, entities: QueryEntities | None) -> None:
        super().__init__(index)
        self.graph = index.knowledge_graph
        self._linker = EntityLinker(self.graph, linking)
        self._entities = entities

    @cached_property
    def edges(self) -> CSR:
        """The graph's triples, to be walked in both directions; a self-loop counts once."""
        return to_csr(self.graph.edge_index, num_nodes=self.graph.num_entities, undirected=True)

    def link(self, queries: Sequence[str]) -> LinkedQueries:
        """The entities that queries name."""
        return link_entities(queries, self._linker, self.index.embedder.encode, self._entities)

    def relation_similarity(self, vectors: Tensor) -> Callable[[Tensor, Tensor], Tensor]:
        """Cosines of queries and the relations of triples, as (query int64 [S], triple int64 [S]) -> float32 [S].

        Args:
            vectors: float32 [B, d], of the queries.
        """
        cosines = vectors @ self.graph.relation_vectors.T
        return lambda query, triple: cosines[query, self.graph.relation_ids[triple]]

    def with_fallback(self, ranking: Ranking, linked: LinkedQueries, vectors: Tensor, top_k: int) -> Ranking:
        """The ranking, with the nearest passages for queries whose entities lead to no chunk, or that name none.

        Args:
            ranking: of B queries.
            linked: their entities; dense retrieval takes over where there are none, even if the ranking holds chunks.
            vectors: float32 [B, d], of the queries.
            top_k: columns wanted.
        """
        named = linked.linked
        lost = (~(named & (ranking.chunks >= 0).any(1))).nonzero()[:, 0]
        if not len(lost):
            return ranking
        scores, rows = self.index.passages.search(vectors[lost], top_k)
        width = max(ranking.chunks.shape[1], rows.shape[1])
        chunks, values = _widened(ranking.chunks, width, -1), _widened(ranking.scores, width, -torch.inf)
        chunks[lost], values[lost] = _widened(rows, width, -1), _widened(scores, width, -torch.inf)
        evidence = list(ranking.evidence)
        for row in lost.tolist():
            nothing = f"no {self.looks_for} is about what the query names"
            reason = nothing if named[row] else "the query names no entity of the graph"
            evidence[row] = replace(evidence[row], fallback=f"dense retrieval: {reason}")
        return Ranking(chunks, values, evidence, ranking.hit_evidence, ranking.usage)


def _widened(table: Tensor, width: int, filler: float) -> Tensor:
    wide = table.new_full((len(table), width), filler)
    wide[:, : table.shape[1]] = table
    return wide
