"""Evidence of DualGraphRAG: nodes, triples and paths as JSON-serialisable items."""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from qgrag.graph import CSR, Paths, Ragged
from qgrag.index.knowledge.build import KnowledgeGraph
from qgrag.index.reader import Index
from qgrag.retrieval.evidence.triple_items import triple_items
from qgrag.retrieval.methods.dual.views import Views

KINDS = ("explicit", "implicit", "namesake")
HitEvidence = list[dict[int, list[dict[str, Any]]]]


def dual_evidence(
    graph: KnowledgeGraph, index: Index, views: Views, chunks: Tensor, titles: CSR
) -> tuple[list[dict[str, Any]], HitEvidence]:
    """Of each query its nodes, triples and paths; of each retrieved chunk the triples that it says or that lead to
    its title, and the path steps that it says.

    Args:
        graph: of the index.
        index: its chunks are named by id.
        views: of B queries.
        chunks: int64 [B, K], padded with -1.
        titles: from each entity to the chunks that it is the title of.
    """
    evidence: list[dict[str, Any]] = [
        {"links": [link.to_dict() for link in links], "nodes": [], "triples": [], "paths": []}
        for links in views.linked.links
    ]
    nodes = (views.nodes.batch(), views.nodes.values, views.kinds, views.weights)
    for query, node, kind, weight in zip(*(column.tolist() for column in nodes), strict=True):
        evidence[query]["nodes"].append({"name": graph.names[node], "kind": KINDS[kind], "weight": weight})
    hop = views.triples
    items = triple_items(graph, torch.cat([hop.triple, views.paths.edges.values]))
    shown = {row: {"kind": "triple", **item.with_chunks(index)} for row, item in items.items()}
    brought: HitEvidence = [{row: [] for row in rows if row >= 0} for rows in chunks.tolist()]
    owner, slot = titles.slots(hop.other)
    led_to = Ragged.from_batch(titles.col[slot], owner, len(hop.other)).to_lists()
    seen: set[tuple[int, int]] = set()
    columns = (hop.query.tolist(), hop.triple.tolist(), hop.similarity.tolist(), led_to)
    for query, row, similarity, titled in zip(*columns, strict=True):
        if (query, row) not in seen:
            seen.add((query, row))
            found = {**shown[row], "similarity": similarity}
            evidence[query]["triples"].append(found)
            _bring(brought[query], [*items[row].chunks, *titled], found)
    for query, edges, forward in _paths(views.paths):
        steps = [{**items[edge].with_chunks(index), "forward": f} for edge, f in zip(edges, forward, strict=True)]
        path = {"kind": "path", "steps": steps}
        evidence[query]["paths"].append(path)
        _bring(brought[query], [chunk for edge in edges for chunk in items[edge].chunks], path)
    return evidence, brought


def _paths(paths: Paths) -> Iterator[tuple[int, list[int], list[bool]]]:
    """Query, triples and whether each is walked from head to tail, of each path."""
    directions = paths.direction.tolist()
    place = 0
    for query, edges in zip(paths.query.tolist(), paths.edges.to_lists(), strict=True):
        yield query, edges, [direction > 0 for direction in directions[place : place + len(edges)]]
        place += len(edges)


def _bring(brought: dict[int, list[dict[str, Any]]], chunks: list[int], item: dict[str, Any]) -> None:
    for chunk in dict.fromkeys(chunks):
        if chunk in brought:
            brought[chunk].append(item)
