"""Nodes that a query only hints at (DualGraphRAG, section 3.3.1, node enhancement), among the ends of its triples."""

from collections.abc import Sequence

import torch
from torch import Tensor

from qgrag.extraction.records import Triple
from qgrag.graph.segments import pool_pairs, reduce_segments, top_per_group
from qgrag.index.knowledge.build import KnowledgeGraph
from qgrag.retrieval.steps.linked_queries import LinkedQueries
from qgrag.retrieval.steps.one_hop import OneHop
from qgrag.retrieval.steps.protocols import ImplicitNodes

Chosen = tuple[Tensor, Tensor, Tensor]
"""Query int64 [M], node int64 [M] and weight float32 [M] of each choice."""


def choose_by_relation(
    graph: KnowledgeGraph, linked: LinkedQueries, hop: OneHop, *, count: int, weight: float, touch_weight: float
) -> Chosen:
    """The ends with the best relation to the query, plus what further nodes of the query they touch.

    Args:
        graph: of the index.
        linked: the explicit nodes of B queries.
        hop: the one-hop triples of these nodes.
        count: choices per query, at most.
        weight: of a query's best choice; the others' are relative to it.
        touch_weight: what an end gains for each further node that it is joined to.
    """
    size = graph.num_entities
    own = linked.nodes.batch() * size + linked.nodes.values
    fits = graph.mentioned[hop.other] & ~torch.isin(hop.query * size + hop.other, own)
    query, other, best = pool_pairs(hop.query[fits], hop.other[fits], hop.similarity[fits], size, "max")
    touching = torch.unique(torch.stack([hop.query[fits] * size + hop.other[fits], hop.node[fits]]), dim=1)[0]
    _, touches = torch.unique(touching, return_counts=True)
    score = (best + touch_weight * (touches - 1)).clamp(min=0.05)
    kept = top_per_group(query, score, count)
    query, other, score = query[kept], other[kept], score[kept]
    first = reduce_segments(score, query, linked.nodes.num_rows, "max")
    return query, other, weight * score / first[query].clamp(min=1e-9)


def choose_by_step(
    step: ImplicitNodes,
    graph: KnowledgeGraph,
    queries: Sequence[str],
    linked: LinkedQueries,
    hop: OneHop,
    *,
    count: int,
    weight: float,
) -> Chosen:
    """What a step chooses, as far as it is an end of the triples shown to it; equal weights.

    Args:
        step: chooses names.
        graph: of the index.
        queries: B texts.
        linked: their explicit nodes.
        hop: the one-hop triples of these nodes.
        count: choices per query, at most.
        weight: of each choice.
    """
    names, (heads, tails) = graph.names, graph.edge_index
    shown: list[list[Triple]] = [[] for _ in queries]
    ends: list[dict[str, int]] = [{} for _ in queries]
    for query, triple in dict.fromkeys(zip(hop.query.tolist(), hop.triple.tolist(), strict=True)):
        head, tail = int(heads[triple]), int(tails[triple])
        shown[query].append(Triple(names[head], graph.relations[triple], names[tail]))
        ends[query] |= {names[head]: head, names[tail]: tail}
    given = [[link.name for link in row] for row in linked.links]
    rows = [
        (query, ends[query][name])
        for query, row in enumerate(step(queries, given, shown))
        for name in row[:count]
        if name in ends[query] and name not in given[query]
    ]
    owner, node = torch.tensor(rows, dtype=torch.long, device=heads.device).view(-1, 2).T
    return owner, node, torch.full((len(rows),), weight, device=heads.device)
