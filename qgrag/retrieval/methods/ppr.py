"""Personalised PageRank over entities and passages, restarted at what a question names and at its nearest passages."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import torch
from torch import Tensor

from qgrag.errors import ConfigError
from qgrag.graph import Ragged, Transition, personalized_pagerank, to_csr, transition
from qgrag.index.reader import Index
from qgrag.retrieval.base import Ranking, Retriever, standardise, top_chunks
from qgrag.retrieval.evidence.base import GraphEvidence
from qgrag.retrieval.linking.linker import EntityLinker, EntityLinkerConfig


@dataclass(frozen=True)
class PPRConfig:
    """A walk over the graph of HippoRAG 2 (Gutierrez et al. 2025): passages are nodes beside the entities.

    Where that method asks a language model which statements a question is about, this one restarts at the entities
    that the question names, rare ones more, and at the passages that hybrid search finds.

    Args:
        damping: share of the walk that goes on along an edge.
        passages: passages at which the walk restarts.
        passage_weight: their share of the restarts; all of it where the question names no entity of the graph.
        title_weight: weight of the edge from a passage to the entity that is its title; 1 for another entity.
        block: questions walked at once; bounds memory to about 20 bytes for each of their nodes.
        linking: how names become entities.
    """

    damping: float = 0.5
    passages: int = 30
    passage_weight: float = 0.5
    title_weight: float = 2.0
    block: int = 256
    linking: EntityLinkerConfig = field(default_factory=EntityLinkerConfig)

    def __post_init__(self) -> None:
        if not 0 <= self.damping < 1 or not 0 <= self.passage_weight <= 1:
            raise ConfigError(
                "ppr.damping must be from 0 to below 1 and passage_weight from 0 to 1, "
                f"not {self.damping} and {self.passage_weight}"
            )
        if self.passages < 1 or self.block < 1 or self.title_weight < 0:
            raise ConfigError(
                "ppr.passages and block must be at least 1 and title_weight 0 or more, "
                f"not {self.passages}, {self.block} and {self.title_weight}"
            )


class PPRRetriever(Retriever):
    """Passages by the share of a random walk that they hold."""

    name = "ppr"
    Config = PPRConfig

    def __init__(self, index: Index, config: PPRConfig | None = None) -> None:
        super().__init__(index)
        self.config = config or PPRConfig()
        self.graph = index.knowledge_graph

    @cached_property
    def _linker(self) -> EntityLinker:
        return EntityLinker(self.graph, self.config.linking)

    @cached_property
    def _walk(self) -> Transition:
        """Entities, then passages; edges are mentions and triples, by how often they are said."""
        graph = self.graph
        entity, chunk = graph.mention_index
        mentioned = graph.mention_count.clamp(max=3).sqrt()
        titled = graph.mention_titled.to(mentioned.dtype)
        weight = mentioned * (1 + (self.config.title_weight - 1) * titled)
        edges = torch.cat([torch.stack([entity, chunk + graph.num_entities]), graph.edge_index], 1)
        weights = torch.cat([weight, graph.edge_weight.clamp(max=3)])
        size = graph.num_entities + len(self.index.chunks)
        return transition(to_csr(edges, weights, num_nodes=size, undirected=True))

    @cached_property
    def _rarity(self) -> Tensor:
        """See `KnowledgeGraph.rarity`, float32 [E]."""
        return self.graph.rarity(len(self.index.chunks))

    def rank(self, queries: Sequence[str], vectors: Tensor, top_k: int) -> Ranking:
        links = self._linker.link_queries(queries, self.index.embedder.encode)
        rows = Ragged.from_lists([[link.entity for link in row] for row in links])
        scores = torch.tensor([link.score for row in links for link in row], dtype=torch.float32)
        parts = []
        for start in range(0, len(queries), self.config.block):
            stop = min(start + self.config.block, len(queries))
            first, last = int(rows.ptr[start]), int(rows.ptr[stop])
            restart, weights = self._restart(
                queries[start:stop], vectors[start:stop], rows.rows(start, stop), scores[first:last]
            )
            mass = personalized_pagerank(self._walk, restart, weights, damping=self.config.damping, tol=1e-5)
            held = mass[:, self.graph.num_entities :]
            parts.append(top_chunks(held.masked_fill(held <= 0, -torch.inf), top_k))
        chunks, values = (torch.cat(column) for column in zip(*parts, strict=True))
        return Ranking(chunks, values, [GraphEvidence(tuple(row)) for row in links])

    def _restart(self, queries: Sequence[str], vectors: Tensor, named: Ragged, scores: Tensor) -> tuple[Ragged, Tensor]:
        """Entities by their links' scores and rarity, and passages by a softmax over hybrid scores."""
        passages = self.index.passages.vectors
        dense = (vectors.to(passages.device) @ passages.T).cpu()
        mixed = standardise(dense) + standardise(self.index.lexical.scores(queries))
        best, near = mixed.topk(min(self.config.passages, mixed.shape[1]), dim=1)
        batch = named.batch()
        weight = scores * self._rarity[named.values]
        total = torch.zeros(len(queries)).index_add_(0, batch, weight)
        weight = weight / total[batch].clamp(min=1e-9) * (1 - self.config.passage_weight)
        share = torch.where(total > 0, self.config.passage_weight, 1.0).unsqueeze(1) * best.softmax(1)
        rows = torch.arange(len(queries)).unsqueeze(1).expand_as(near)
        owner = torch.cat([batch, rows.flatten()])
        nodes = torch.cat([named.values, near.flatten() + self.graph.num_entities])
        order = torch.argsort(owner, stable=True)
        weights = torch.cat([weight, share.flatten()])[order]
        return Ragged.from_batch(nodes[order], owner[order], len(queries)), weights
