"""DualGraphRAG: one-hop triples and shortest paths around the nodes that a query names or implies."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar

import torch
from torch import Tensor

from qgrag.errors import ConfigError
from qgrag.graph import CSR, Paths, Ragged, drop_contained, shortest_paths, to_csr
from qgrag.graph.segments import Pooling, distinct_in_rows, pool_pairs, top_pairs, top_per_group
from qgrag.index.knowledge.build import MAY_BE
from qgrag.index.reader import Index
from qgrag.retrieval.base import Maker, Ranking
from qgrag.retrieval.graph_retriever import GraphRetriever
from qgrag.retrieval.linking.linker import EntityLinkerConfig
from qgrag.retrieval.methods.dual.evidence import dual_evidence
from qgrag.retrieval.methods.dual.implicit import Chosen, choose_by_relation, choose_by_step
from qgrag.retrieval.methods.dual.views import EXPLICIT, IMPLICIT, NAMESAKE, Views
from qgrag.retrieval.steps.linked_queries import LinkedQueries
from qgrag.retrieval.steps.llm_implicit_nodes import LLMImplicitNodes
from qgrag.retrieval.steps.one_hop import OneHop, one_hop
from qgrag.retrieval.steps.paired_dots import paired_dots
from qgrag.retrieval.steps.protocols import ImplicitNodes, QueryEntities


@dataclass(frozen=True)
class DualConfig:
    """Retrieval by DualGraphRAG (section 3.3) and how its views rank chunks.

    Args:
        implicit_nodes: nodes that the query only hints at, at most (the paper: 3); 0 leaves the step out.
        triples: whether the one-hop triples of all nodes are a view.
        paths: whether the shortest paths between all nodes are one.
        max_triples: triples shown per node, those whose relation is most similar to the query. The paper has
            no bound; a hub would drown the others.
        max_hops: longest path.
        paths_per_pair: paths kept per pair of nodes.
        touch_weight: what an implicit node gains for each further node of the query that it is joined to.
        implicit_weight: weight of the best implicit node beside an entity of the query, which has 1.
        specificity: power of log(1 + C / df) / log(1 + C) by which a node's weight shrinks, for C chunks of which df
            mention it: a hub must not drown the rest. 0 leaves weights as they are.
        triple_base: what a triple counts for besides the similarity of its relation to the query.
        about_weight: what it counts that a chunk's title is one of the nodes.
        other_weight: what a triple counts for a chunk whose title is its other end.
        path_weight: what a step of a path counts for the chunks that say it, divided by the path's length.
        dense_weight: weight of the passage's cosine with the query among the chunks found.
        linking: how names become nodes.
    """

    implicit_nodes: int = 3
    triples: bool = True
    paths: bool = True
    max_triples: int = 50
    max_hops: int = 4
    paths_per_pair: int = 1
    touch_weight: float = 0.1
    implicit_weight: float = 0.6
    specificity: float = 1.0
    triple_base: float = 0.3
    about_weight: float = 0.5
    other_weight: float = 0.5
    path_weight: float = 0.1
    dense_weight: float = 0.1
    linking: EntityLinkerConfig = field(default_factory=EntityLinkerConfig)

    def __post_init__(self) -> None:
        if self.implicit_nodes < 0:
            raise ConfigError(f"dual.implicit_nodes must be 0 or more, not {self.implicit_nodes}")
        for name in ("max_triples", "max_hops", "paths_per_pair"):
            if getattr(self, name) < 1:
                raise ConfigError(f"dual.{name} must be at least 1, not {getattr(self, name)}")
        weights = ("touch", "implicit", "about", "other", "path", "dense")
        for name in (*(f"{weight}_weight" for weight in weights), "triple_base", "specificity"):
            if getattr(self, name) < 0:
                raise ConfigError(f"dual.{name} must be 0 or more, not {getattr(self, name)}")
        if not (self.triples or self.paths):
            raise ConfigError("dual.triples and dual.paths are both off; one view at least must be on")


class DualRetriever(GraphRetriever):
    """Chunks by the triples and paths that they support.

    Without an LLM, explicit nodes are the names in the query that the graph knows, and implicit nodes are the
    ends of their triples whose relation is most similar to the query.

    Args:
        index: with a knowledge graph.
        config: see there.
        entities: takes names from queries in place of the graph's own names.
        implicit: chooses implicit nodes in place of relation similarity.
    """

    name = "dual"
    Config = DualConfig
    steps: ClassVar[Mapping[str, Maker]] = {
        **GraphRetriever.steps,
        "implicit": lambda model, prompts, config: LLMImplicitNodes(model, prompts, config.implicit_nodes),
    }
    looks_for = "triple or title"
    reads = "views"

    def __init__(
        self,
        index: Index,
        config: DualConfig | None = None,
        *,
        entities: QueryEntities | None = None,
        implicit: ImplicitNodes | None = None,
    ) -> None:
        self.config = config or DualConfig()
        super().__init__(index, self.config.linking, entities)
        self._implicit = implicit

    @cached_property
    def _namesakes(self) -> CSR:
        """Edges from a plain name to the titles that it may mean."""
        may_be = torch.tensor([relation == MAY_BE for relation in self.graph.relations], dtype=torch.bool)
        return to_csr(self.graph.edge_index[:, may_be], num_nodes=self.graph.num_entities)

    @cached_property
    def _specificity(self) -> Tensor:
        """See `KnowledgeGraph.rarity`, float32 [E]."""
        return self.graph.rarity(len(self.index.chunks))

    @cached_property
    def _titles(self) -> CSR:
        """From each entity to the chunks that it is the title of, as columns after the entities."""
        titled = self.graph.mention_titled
        entity, chunk = self.graph.mention_index[:, titled]
        size = max(self.graph.num_entities, len(self.index.chunks))
        return to_csr(torch.stack([entity, chunk]), num_nodes=size)

    @classmethod
    def steps_of(cls, config: DualConfig) -> Mapping[str, Maker]:
        return {name: make for name, make in cls.steps.items() if name != "implicit" or config.implicit_nodes}

    def rank(self, queries: Sequence[str], vectors: Tensor, top_k: int) -> Ranking:
        linked = self.link(queries)
        views = self.views(queries, linked, vectors)
        query, chunk, score = self.score_chunks(views, vectors)
        chunks, scores = top_pairs(query, chunk, score, len(queries), top_k)
        evidence, brought = dual_evidence(self.graph, self.index, views, chunks, self._titles)
        return self.with_fallback(Ranking(chunks, scores, evidence, brought), linked, vectors, top_k)

    def views(self, queries: Sequence[str], linked: LinkedQueries, vectors: Tensor) -> Views:
        """Both views of a batch (section 3.3).

        Args:
            queries: B texts.
            linked: their explicit nodes.
            vectors: float32 [B, d].
        """
        c, similarity = self.config, self.relation_similarity(vectors)
        hop = one_hop(self.edges, linked.nodes, similarity, c.max_triples)
        parts = [(linked.nodes.batch(), linked.nodes.values, linked.weights, EXPLICIT)]
        if c.implicit_nodes:
            parts.append((*self._implicit_nodes(queries, linked, hop), IMPLICIT))
        for query, node, weight, _ in tuple(parts):
            owner, slot = self._namesakes.slots(node)
            parts.append((query[owner], self._namesakes.col[slot], weight[owner], NAMESAKE))
        nodes, weights, kinds = _distinct_nodes(parts, len(queries), self.graph.num_entities)
        weights = weights * self._specificity[nodes.values] ** c.specificity
        hop = one_hop(self.edges, nodes, similarity, c.max_triples)
        if not c.triples:
            hop = OneHop(*(column[:0] for column in hop))
        seeds = nodes if c.paths else Ragged(nodes.values[:0], torch.zeros_like(nodes.ptr))
        paths = shortest_paths(self.edges, seeds, max_hops=c.max_hops, max_paths_per_pair=c.paths_per_pair)
        return Views(linked, nodes, weights, kinds, hop, drop_contained(paths))

    def _implicit_nodes(self, queries: Sequence[str], linked: LinkedQueries, hop: OneHop) -> Chosen:
        count, weight = self.config.implicit_nodes, self.config.implicit_weight
        if self._implicit is not None:
            return choose_by_step(self._implicit, self.graph, queries, linked, hop, count=count, weight=weight)
        touch_weight = self.config.touch_weight
        return choose_by_relation(self.graph, linked, hop, count=count, weight=weight, touch_weight=touch_weight)

    def score_chunks(self, views: Views, vectors: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Score of every (query, chunk) that a view supports: query [P], chunk [P], float32 [P].

        The sum over a query's nodes, each times its weight, of what its three best triples from the chunk
        count on average, and of `about_weight` where the chunk bears the node's name; at least what a triple
        counts for the chunk titled with its other end; plus what the steps of paths count, and the passage's
        cosine.
        """
        c, size = self.config, len(self.index.chunks)
        batch, weight = views.nodes.batch(), views.weights
        hop = views.triples
        value = weight[hop.place] * (c.triple_base + hop.similarity.clamp(min=0))
        owner, chunk = self.graph.triple_chunks.gather(hop.triple)
        group = hop.place[owner] * size + chunk
        kept = top_per_group(group, value[owner], 3)
        said = (hop.query[owner[kept]], chunk[kept], value[owner[kept]] / 3)
        owner, slot = self._titles.slots(views.nodes.values)
        about = (batch[owner], self._titles.col[slot], c.about_weight * weight[owner])
        steps = self._path_values(views.paths)
        query, chunk, score = _pooled((said, about, steps), size, "sum")
        owner, slot = self._titles.slots(hop.other)
        other = (hop.query[owner], self._titles.col[slot], c.other_weight * value[owner])
        query, chunk, score = _pooled(((query, chunk, score), other), size, "max")
        passages = self.index.passages.vectors
        return query, chunk, score + c.dense_weight * paired_dots(vectors, query, passages, chunk)

    def _path_values(self, paths: Paths) -> tuple[Tensor, Tensor, Tensor]:
        path = paths.edges.batch()
        value = self.config.path_weight / paths.edges.counts()[path].float()
        owner, chunk = self.graph.triple_chunks.gather(paths.edges.values)
        return paths.query[path[owner]], chunk, value[owner]


def _pooled(parts: Sequence[tuple[Tensor, Tensor, Tensor]], size: int, pooling: Pooling) -> tuple[Tensor, ...]:
    query, chunk, score = (torch.cat(column) for column in zip(*parts, strict=True))
    return pool_pairs(query, chunk, score, size, pooling)


def _distinct_nodes(
    parts: Sequence[tuple[Tensor, Tensor, Tensor, int]], num_queries: int, num_entities: int
) -> tuple[Ragged, Tensor, Tensor]:
    """Nodes of all parts by query, each once, where it came first."""
    query = torch.cat([part[0] for part in parts])
    node = torch.cat([part[1] for part in parts])
    weight = torch.cat([part[2] for part in parts])
    kind = torch.cat([torch.full_like(part[0], part[3], dtype=torch.int8) for part in parts])
    kept = distinct_in_rows(query, node, num_entities)
    return Ragged.from_batch(node[kept], query[kept], num_queries), weight[kept], kind[kept]
