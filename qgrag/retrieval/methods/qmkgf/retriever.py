"""QMKGF: three subgraphs per query. The best is fused with triples that fit, and the result expands the query."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

import torch
from torch import Tensor

from qgrag.errors import ConfigError
from qgrag.graph.segments import pool_pairs, top_pairs, top_per_group
from qgrag.index.reader import Index
from qgrag.retrieval.base import Ranking
from qgrag.retrieval.graph_retriever import GraphRetriever
from qgrag.retrieval.linking.linker import EntityLinkerConfig
from qgrag.retrieval.methods.qmkgf.evidence import qmkgf_evidence
from qgrag.retrieval.methods.qmkgf.expansion import Expansions, Join, expand_queries
from qgrag.retrieval.methods.qmkgf.fusion import Fusion, Strategy, fuse
from qgrag.retrieval.methods.qmkgf.scorer import AUTO, load_scorer
from qgrag.retrieval.methods.qmkgf.subgraphs import KINDS, Subgraphs, build_subgraphs
from qgrag.retrieval.steps.paired_dots import paired_dots
from qgrag.retrieval.steps.protocols import QueryEntities
from qgrag.retrieval.steps.stored_vectors import vectors_of_triples


@dataclass(frozen=True)
class QMKGFConfig:
    """QMKGF (sections 3.1 to 3.4).

    Args:
        nodes: K, nodes of each subgraph besides e_t.
        bridges: best one-hop neighbours whose neighbours make the multi-hop subgraph.
        damping: d of the personalised PageRank.
        max_neighbours: neighbours looked at per node; a hub's others are passed over, the most weighty stay.
        strategy: `reward` and `cosine` take the subgraph that scores best by the reward model or by cosine
            and add the others' triples at least as close to the query as it is; `all` joins the three; `top5`
            the five triples of each that are closest to the query (table 7).
        reward: folder of a trained reward model; `auto` takes the one that comes with the package where the index
            has vectors of the model that it was trained on, and cosine elsewhere; empty scores by cosine.
        join: how the query is joined with an item of the subgraph: `text` encodes both as one text, as the paper
            does; `vectors` adds their unit vectors, which needs no encoder and finds as much (docs/pipelines.md).
        max_expansions: searches made per query besides its own, those closest to it.
        search_depth: chunks that each search brings.
        rerank: `expanded` orders the union by the best of all its searches plus the query's own; `query` by
            the query alone, as a re-ranker that sees only the query would.
        linking: how names become entities.
    """

    nodes: int = 10
    bridges: int = 2
    damping: float = 0.85
    max_neighbours: int = 200
    strategy: Strategy = "reward"
    reward: str = AUTO
    join: Join = "vectors"
    max_expansions: int = 60
    search_depth: int = 10
    rerank: Literal["expanded", "query"] = "expanded"
    linking: EntityLinkerConfig = field(default_factory=EntityLinkerConfig)

    def __post_init__(self) -> None:
        for name in ("nodes", "bridges", "max_neighbours", "max_expansions", "search_depth"):
            if getattr(self, name) < 1:
                raise ConfigError(f"qmkgf.{name} must be at least 1, not {getattr(self, name)}")
        if not 0 <= self.damping < 1:
            raise ConfigError(f"qmkgf.damping must be at least 0 and below 1, not {self.damping}")


class QMKGFRetriever(GraphRetriever):
    """Chunks found by the query joined with each entity, relation and triple of its fused subgraph.

    Args:
        index: with a knowledge graph.
        config: see there.
        entities: takes names from queries in place of the graph's own names.
    """

    name = "qmkgf"
    Config = QMKGFConfig
    looks_for = "passage"

    def __init__(
        self, index: Index, config: QMKGFConfig | None = None, *, entities: QueryEntities | None = None
    ) -> None:
        self.config = config or QMKGFConfig()
        super().__init__(index, self.config.linking, entities)
        wanted = self.config.reward if self.config.strategy == "reward" else ""
        self.scorer = load_scorer(wanted, index.embedder)

    def rank(self, queries: Sequence[str], vectors: Tensor, top_k: int) -> Ranking:
        linked = self.link(queries)
        subgraphs = build_subgraphs(
            self.graph,
            linked.nodes,
            nodes=self.config.nodes,
            bridges=self.config.bridges,
            damping=self.config.damping,
            max_neighbours=self.config.max_neighbours,
        )
        fusion = self.fuse(subgraphs, vectors)
        embedder, join = self.index.embedder, self.config.join
        encode = embedder.encode_queries if join == "text" else embedder.encode
        expansions = expand_queries(queries, vectors, fusion, self.graph, self.config.max_expansions, encode, join)
        query, chunk, score, source = self.search(vectors, expansions)
        chunks, scores = top_pairs(query, chunk, score, len(queries), top_k)
        evidence, brought = qmkgf_evidence(
            self.graph, linked.links, subgraphs, fusion, expansions, (query, chunk, source), chunks, self.scorer.name
        )
        return self.with_fallback(Ranking(chunks, scores, evidence, brought), linked, vectors, top_k)

    def fuse(self, subgraphs: Subgraphs, vectors: Tensor) -> Fusion:
        """The steps of section 3.3 for a batch; vectors are float32 [B, d]."""
        rows, place = torch.unique(subgraphs.triples, return_inverse=True)
        triple_vectors = vectors_of_triples(self.graph, rows, self.index.embedder.encode)[place]
        scores = None
        if self.scorer.model is not None:
            owners = vectors.repeat_interleave(len(KINDS), dim=0)
            scores = self.scorer.model.score_subgraphs(owners, triple_vectors, subgraphs.ptr).view(-1, len(KINDS))
        return fuse(subgraphs, triple_vectors, vectors, scores, self.config.strategy)

    def search(self, vectors: Tensor, expansions: Expansions) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """The union of all searches of each query, reranked: query, chunk, score and best expansion, all [P].

        The best expansion of a chunk is -1 where the query itself found it better.
        """
        passages = self.index.passages
        depth = min(self.config.search_depth, len(self.index.chunks))
        own_scores, own = passages.search(vectors, depth)
        scores, rows = passages.search(expansions.vectors, depth)
        query = torch.cat([_rows_of(own), expansions.query[_rows_of(rows)]])
        source = torch.cat([torch.full((own.numel(),), -1, device=own.device), _rows_of(rows)])
        chunk, score = torch.cat([own.flatten(), rows.flatten()]), torch.cat([own_scores.flatten(), scores.flatten()])
        found = chunk >= 0
        query, source, chunk, score = query[found], source[found], chunk[found], score[found]
        size = len(self.index.chunks)
        best = top_per_group(query * size + chunk, score, 1)
        query, source, chunk = query[best], source[best], chunk[best]
        query, chunk, found_score = pool_pairs(query, chunk, score[best], size, "max")
        own_cosine = paired_dots(vectors, query, passages.vectors, chunk)
        value = own_cosine if self.config.rerank == "query" else found_score + own_cosine
        return query, chunk, value, source


def _rows_of(table: Tensor) -> Tensor:
    """Row number of each entry of a table, int64 [rows * columns]."""
    return torch.arange(len(table), device=table.device).repeat_interleave(table.shape[1])
