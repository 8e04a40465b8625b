"""Steps that the retrievers on the knowledge graph share: linked queries, one-hop triples, fallback to dense."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import torch
from torch import Tensor

from qgrag.graph import CSR, Ragged
from qgrag.graph.ragged import pieces
from qgrag.graph.segments import top_per_group
from qgrag.index.knowledge.build import KnowledgeGraph
from qgrag.index.vectors import VectorIndex
from qgrag.retrieval.base import Ranking
from qgrag.retrieval.linking.link import Encode, Link
from qgrag.retrieval.linking.linker import EntityLinker
from qgrag.retrieval.steps.protocols import QueryEntities

BYTES_A_SLOT = 64


@dataclass(frozen=True)
class LinkedQueries:
    """The entities of a batch of B queries.

    Args:
        links: of each query, in the order of its text.
        nodes: their rows in the knowledge graph.
        weights: float32, one for each of `nodes.values`: the links' scores.
    """

    links: list[list[Link]]
    nodes: Ragged
    weights: Tensor

    @property
    def linked(self) -> Tensor:
        """Whether each query has an entity, bool [B]."""
        return self.nodes.counts() > 0


def link_entities(
    queries: Sequence[str], linker: EntityLinker, encode: Encode, step: QueryEntities | None
) -> LinkedQueries:
    """The entities that queries mean.

    Args:
        queries: B texts.
        linker: to the graph.
        encode: names -> unit vectors, as the graph's names were encoded.
        step: takes names from the queries. Without it, and of queries that it could not read, every name is taken
            that the graph knows.
    """
    found = [None] * len(queries) if step is None else step(queries)
    links = linker.link_names([(*row.explicit, *row.enhanced) if row else () for row in found], encode)
    unread = [i for i, row in enumerate(found) if row is None]
    for i, row in zip(unread, linker.link_queries([queries[i] for i in unread], encode)):
        links[i] = row
    rows = Ragged.from_lists([[link.entity for link in row] for row in links])
    weights = torch.tensor([link.score for row in links for link in row], dtype=torch.float32)
    return LinkedQueries(links, rows, weights)


class OneHop(NamedTuple):
    """Triples around nodes, by node, the most similar first; all tensors [M].

    Args:
        place: int64, position of the node in the batch of nodes.
        query: int64.
        node: int64.
        other: int64, the other end of the triple.
        triple: int64.
        similarity: float32, of the triple's relation to the query.
    """

    place: Tensor
    query: Tensor
    node: Tensor
    other: Tensor
    triple: Tensor
    similarity: Tensor


def one_hop(
    csr: CSR,
    nodes: Ragged,
    similarity: Callable[[Tensor, Tensor], Tensor],
    max_triples: int,
    *,
    memory_mb: int = 256,
) -> OneHop:
    """The triples that each node is an end of, at most `max_triples` a node, those most similar to the query.

    Nodes are read in pieces of about `memory_mb`, so that a hub of a hundred thousand edges costs its own
    slots once and leaves no more triples behind than any other node. O(T log T) time for T slots.

    Args:
        csr: of the triples, undirected; a self-loop counts once.
        nodes: B rows.
        similarity: (query [S], triple [S]) -> float32 [S].
        max_triples: triples kept of a node.
        memory_mb: bound of what is gathered at once; a single node may exceed it.
    """
    batch = nodes.batch()
    parts = []
    for start, stop in pieces(csr.degree()[nodes.values], max(1, memory_mb * 2**20 // BYTES_A_SLOT)):
        place, slot = csr.slots(nodes.values[start:stop])
        query, triple = batch[start:stop][place], csr.edge_id[slot]
        score = similarity(query, triple)
        kept = top_per_group(place, score, max_triples)
        found = (place[kept] + start, query[kept], nodes.values[start:stop][place[kept]])
        parts.append(OneHop(*found, csr.col[slot[kept]], triple[kept], score[kept]))
    return OneHop(*(torch.cat(column) for column in zip(*parts, strict=True)))


def dense_fallback(
    ranking: Ranking, linked: Tensor, vectors: Tensor, passages: VectorIndex, top_k: int, what: str
) -> Ranking:
    """The ranking with the nearest passages in place of the rows of queries for which the graph has no chunk.

    Args:
        ranking: of B queries.
        linked: bool [B], whether each query has an entity; where False, dense retrieval takes over even if the
            ranking holds chunks.
        vectors: float32 [B, d] of the queries.
        passages: of all chunks.
        top_k: columns wanted.
        what: what a retriever looks for around an entity, for the evidence of a query whose entities have none.
    """
    lost = (~(linked & (ranking.chunks >= 0).any(1))).nonzero()[:, 0]
    if not len(lost):
        return ranking
    scores, rows = passages.search(vectors[lost], top_k)
    width = max(ranking.chunks.shape[1], rows.shape[1])
    chunks, values = _widened(ranking.chunks, width, -1), _widened(ranking.scores, width, -torch.inf)
    chunks[lost], values[lost] = _widened(rows, width, -1), _widened(scores, width, -torch.inf)
    evidence = list(ranking.evidence)
    for row in lost.tolist():
        reason = f"no {what} is about what the query names" if linked[row] else "the query names no entity of the graph"
        evidence[row] = replace(evidence[row], fallback=f"dense retrieval: {reason}")
    return Ranking(chunks, values, evidence, ranking.hit_evidence, ranking.usage)


def _widened(table: Tensor, width: int, filler: float) -> Tensor:
    wide = table.new_full((len(table), width), filler)
    wide[:, : table.shape[1]] = table
    return wide


def vectors_of_triples(graph: KnowledgeGraph, rows: Tensor, encode: Encode) -> Tensor:
    """Unit vectors of triples, float32 ``[R, d]``: the graph's where it holds them, else encoded.

    Args:
        graph: whose triples they are.
        rows: int64 ``[R]``, triples; each once, so that none is encoded twice.
        encode: texts -> unit vectors.
    """
    if len(graph.triple_vectors):
        return graph.triple_vectors[rows]
    return encode(graph.triple_texts(rows.tolist()))
