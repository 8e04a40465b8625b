"""Evidence of DualGraphRAG: nodes, triples and paths of each query, and what brought each chunk."""

from collections.abc import Iterable, Iterator
from typing import Literal

import torch
from torch import Tensor

from qgrag.graph import CSR, Paths, Ragged
from qgrag.index.knowledge.build import KnowledgeGraph
from qgrag.index.reader import Index
from qgrag.retrieval.evidence.base import Item
from qgrag.retrieval.evidence.items import PathItem, PathStep, TripleItem
from qgrag.retrieval.evidence.named_triples import extended, sourced_triples
from qgrag.retrieval.evidence.records import DualEvidence, EntityNode
from qgrag.retrieval.methods.dual.views import Views

KINDS: tuple[Literal["explicit", "implicit", "namesake"], ...] = ("explicit", "implicit", "namesake")
HitEvidence = list[dict[int, list[Item]]]


def dual_evidence(
    graph: KnowledgeGraph, index: Index, views: Views, chunks: Tensor, titles: CSR
) -> tuple[list[DualEvidence], HitEvidence]:
    """Of each query its nodes, triples and paths; of each retrieved chunk the triples that it says or that lead to
    its title, and the path steps that it says.

    Args:
        graph: of the index.
        index: its chunks are named by id.
        views: of B queries.
        chunks: int64 [B, K], padded with -1.
        titles: from each entity to the chunks that it is the title of.
    """
    hop, links = views.triples, views.linked.links
    nodes: list[list[EntityNode]] = [[] for _ in links]
    triples: list[dict[int, TripleItem]] = [{} for _ in links]
    paths: list[list[PathItem]] = [[] for _ in links]
    columns = (views.nodes.batch(), views.nodes.values, views.kinds, views.weights)
    for query, node, kind, weight in zip(*(column.tolist() for column in columns), strict=True):
        nodes[query].append(EntityNode(graph.names[node], KINDS[kind], weight, entity_row=node))
    named = sourced_triples(graph, index, torch.cat([hop.triple, views.paths.edges.values]))
    brought: HitEvidence = [{row: [] for row in rows if row >= 0} for rows in chunks.tolist()]
    owner, slot = titles.slots(hop.other)
    led_to = Ragged.from_batch(titles.col[slot], owner, len(hop.other)).to_lists()
    found = (hop.query.tolist(), hop.triple.tolist(), hop.similarity.tolist(), led_to)
    for query, row, similarity, titled in zip(*found, strict=True):
        if row not in triples[query]:
            item = extended(named[row], TripleItem, similarity=similarity)
            triples[query][row] = item
            _bring(brought[query], [*item.chunk_rows, *titled], item)
    for query, edges, forward in _paths(views.paths):
        path = PathItem(tuple(extended(named[row], PathStep, forward=f) for row, f in zip(edges, forward, strict=True)))
        paths[query].append(path)
        _bring(brought[query], (chunk for step in path.steps for chunk in step.chunk_rows), path)
    evidence = [
        DualEvidence(tuple(row), tuple(nodes[b]), tuple(triples[b].values()), tuple(paths[b]))
        for b, row in enumerate(links)
    ]
    return evidence, brought


def _paths(paths: Paths) -> Iterator[tuple[int, list[int], list[bool]]]:
    """Query, triples and whether each is walked from head to tail, of each path."""
    directions = paths.direction.tolist()
    place = 0
    for query, edges in zip(paths.query.tolist(), paths.edges.to_lists(), strict=True):
        yield query, edges, [direction > 0 for direction in directions[place : place + len(edges)]]
        place += len(edges)


def _bring(brought: dict[int, list[Item]], chunks: Iterable[int], item: Item) -> None:
    for chunk in dict.fromkeys(chunks):
        if chunk in brought:
            brought[chunk].append(item)
