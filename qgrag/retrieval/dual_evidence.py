"""Evidence of DualGraphRAG: nodes, triples and paths as JSON-serialisable items."""

from typing import TYPE_CHECKING, Any

from torch import Tensor

from qgrag.graph import Paths
from qgrag.index.knowledge_graph import KnowledgeGraph
from qgrag.index.reader import Index

if TYPE_CHECKING:
    from qgrag.retrieval.dual import Views

KINDS = ("explicit", "implicit", "namesake")
HitEvidence = list[dict[int, list[dict[str, Any]]]]


def dual_evidence(
    graph: KnowledgeGraph, index: Index, views: "Views", chunks: Tensor
) -> tuple[list[dict[str, Any]], HitEvidence]:
    """Of each query its nodes, triples and paths; of each retrieved chunk the triples and path steps that it
    says.

    Args:
        graph: of the index.
        index: its chunks are named by id.
        views: of B queries.
        chunks: int64 [B, K], padded with -1.
    """
    evidence: list[dict[str, Any]] = [
        {"links": [link.to_dict() for link in links], "nodes": [], "triples": [], "paths": []}
        for links in views.linked.links
    ]
    columns = (views.nodes.batch(), views.nodes.values, views.kinds, views.weights)
    for query, node, kind, weight in zip(*(column.tolist() for column in columns), strict=True):
        evidence[query]["nodes"].append({"name": graph.names[node], "kind": KINDS[kind], "weight": weight})
    brought: HitEvidence = [{row: [] for row in rows if row >= 0} for rows in chunks.tolist()]
    seen: set[tuple[int, int]] = set()
    hop = views.triples
    for query, row, similarity in zip(hop.query.tolist(), hop.triple.tolist(), hop.similarity.tolist(), strict=True):
        if (query, row) not in seen:
            seen.add((query, row))
            item, supported = _triple(graph, index, row)
            item["similarity"] = similarity
            evidence[query]["triples"].append(item)
            _bring(brought[query], supported, item)
    for query, steps, supported in _paths(graph, index, views.paths):
        item = {"kind": "path", "steps": steps}
        evidence[query]["paths"].append(item)
        _bring(brought[query], supported, item)
    return evidence, brought


def _triple(graph: KnowledgeGraph, index: Index, row: int) -> tuple[dict[str, Any], list[int]]:
    head, tail = graph.edge_index[:, row].tolist()
    values, ptr = graph.triple_chunks
    chunks = values[ptr[row] : ptr[row + 1]].tolist()
    item = {
        "kind": "triple",
        "head": graph.names[head],
        "relation": graph.relations[row],
        "tail": graph.names[tail],
        "chunks": [index.chunks[chunk].id for chunk in chunks],
    }
    return item, chunks


def _paths(graph: KnowledgeGraph, index: Index, paths: Paths) -> list[tuple[int, list[dict[str, Any]], list[int]]]:
    """Query, steps and supporting chunks of each path; `forward` is False where a step runs against its triple."""
    found = []
    directions = paths.direction.tolist()
    place = 0
    for query, edges in zip(paths.query.tolist(), paths.edges.to_lists(), strict=True):
        steps, supported = [], []
        for edge in edges:
            item, chunks = _triple(graph, index, edge)
            steps.append({key: item[key] for key in ("head", "relation", "tail", "chunks")})
            steps[-1]["forward"] = directions[place] > 0
            supported += chunks
            place += 1
        found.append((query, steps, supported))
    return found


def _bring(brought: dict[int, list[dict[str, Any]]], chunks: list[int], item: dict[str, Any]) -> None:
    for chunk in dict.fromkeys(chunks):
        if chunk in brought:
            brought[chunk].append(item)
