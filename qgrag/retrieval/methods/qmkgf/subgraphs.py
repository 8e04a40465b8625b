"""The three subgraphs of QMKGF (section 3.2) around the entities of each query."""

from typing import NamedTuple

import torch
from torch import Tensor

from qgrag.graph import CSR, Ragged, induced_subgraph, personalized_pagerank_topk
from qgrag.graph.ragged import pieces
from qgrag.graph.segments import distinct_in_rows, top_per_group
from qgrag.index.knowledge.build import KnowledgeGraph
from qgrag.retrieval.steps.one_hop import BYTES_PER_SLOT
from qgrag.retrieval.steps.paired_dots import paired_dots

KINDS = ("one-hop", "multi-hop", "importance")
MEMORY_MB = 256


class Subgraphs(NamedTuple):
    """Three subgraphs for each of B queries: row 3 b + k is kind k of query b.

    Args:
        nodes: 3 B rows of entities, the query's own first.
        triples: int64 [M], rows of the graph's triples, ascending within a subgraph.
        ptr: int64 [3 B + 1] into `triples`.
    """

    nodes: Ragged
    triples: Tensor
    ptr: Tensor

    @property
    def num_queries(self) -> int:
        return (len(self.ptr) - 1) // len(KINDS)

    def owner(self) -> Tensor:
        """Subgraph of each triple, int64 [M]."""
        return torch.repeat_interleave(self.ptr.diff())


def build_subgraphs(
    graph: KnowledgeGraph, entities: Ragged, *, nodes: int, bridges: int, damping: float, max_neighbours: int
) -> Subgraphs:
    """One-hop, multi-hop and importance subgraph of each query; those of several entities are merged by kind.

    Edges are followed in both directions, which the paper's directed E would not do: a triple found from its
    tail is as good. Parallel triples between two entities count as one neighbour whose weight is their sum.

    Args:
        graph: with entity vectors.
        entities: e_t, B rows.
        nodes: K.
        bridges: one-hop neighbours whose neighbours are taken (the paper: 2).
        damping: d.
        max_neighbours: neighbours looked at per node, the most weighty first.
    """
    csr = graph.weighted_edges
    own = entities.values
    start = torch.arange(len(own), device=own.device)
    place, first, similarity = _nearest(graph, csr, own, start, own, nodes, max_neighbours)
    bridge = top_per_group(place, similarity, bridges)
    spread, second, _ = _nearest(graph, csr, first[bridge], place[bridge], own, nodes, max_neighbours)
    multi = (torch.cat([place[bridge], spread]), torch.cat([first[bridge], second]))
    ranked = personalized_pagerank_topk(
        csr,
        Ragged(own, torch.arange(len(own) + 1, device=own.device)),
        min(nodes + 1, graph.num_entities),
        damping=damping,
        tol=1e-5,
    )
    kept = ranked.ids >= 0
    importance = (kept.nonzero()[:, 0], ranked.ids[kept])
    batch = entities.batch()
    rows, values = [], []
    for kind, (entity, node) in enumerate(((place, first), multi, importance)):
        rows += [batch * len(KINDS) + kind, batch[entity] * len(KINDS) + kind]
        values += [own, node]
    members = _distinct(torch.cat(rows), torch.cat(values), entities.num_rows * len(KINDS), graph.num_entities)
    edges = induced_subgraph(csr, members)
    return Subgraphs(members, edges.values, edges.ptr)


def _nearest(
    graph: KnowledgeGraph, csr: CSR, nodes: Tensor, owner: Tensor, entity: Tensor, k: int, max_neighbours: int
) -> tuple[Tensor, Tensor, Tensor]:
    """Equation 3: of all neighbours of an owner's nodes the k most similar to its entity.

    Args:
        graph: with entity vectors.
        csr: of its triples, undirected.
        nodes: int64 [F], whose neighbours are looked at.
        owner: int64 [F], the position in `entity` that each node belongs to.
        entity: int64 [O], e_t.
        k: K.
        max_neighbours: see `build_subgraphs`.

    Returns:
        owner, neighbour and similarity of each one kept, best first within an owner.
    """
    weight = csr.weight
    assert weight is not None
    parts = []
    for start, stop in pieces(csr.degree()[nodes], MEMORY_MB * 2**20 // BYTES_PER_SLOT):
        place, slot = csr.slots(nodes[start:stop])
        kept = top_per_group(place, weight[slot], max_neighbours)
        parts.append((place[kept] + start, slot[kept]))
    place, slot = (torch.cat(column) for column in zip(*parts, strict=True))
    pairs = torch.unique(torch.stack([owner[place], csr.col[slot]]), dim=1)
    pairs = pairs[:, pairs[1] != entity[pairs[0]]]
    similarity = paired_dots(graph.vectors, entity[pairs[0]], graph.vectors, pairs[1])
    best = top_per_group(pairs[0], similarity, k)
    return pairs[0][best], pairs[1][best], similarity[best]


def _distinct(row: Tensor, value: Tensor, num_rows: int, num_values: int) -> Ragged:
    """Rows of values, each once, where it came first."""
    kept = distinct_in_rows(row, value, num_values)
    return Ragged.from_batch(value[kept], row[kept], num_rows)
