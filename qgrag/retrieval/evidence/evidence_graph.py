"""The graph in a result's evidence: who is joined to whom, and why."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Literal, NamedTuple

from qgrag.retrieval.results import Hit, RetrievalResult

EdgeKind = Literal["path", "fused", "triple", "left out", "weak", "strong", "source"]
NodeKind = Literal["query", "implied", "question", "document", "other"]
QUESTIONS = 3
"""Question nodes drawn of a hit, at most."""


class Edge(NamedTuple):
    """One arrow, from `head` to `tail`.

    Args:
        kind: `path`: a step of a shortest path; `fused`: a triple of QMKGF's fused subgraph; `left out`: one of its
            other subgraphs; `triple`: one around a node; `weak`, `strong`: FG-RAG's contexts; `source`: to a hit, from
            what brought it.
    """

    head: str
    label: str
    tail: str
    kind: EdgeKind


def evidence_edges(result: RetrievalResult) -> list[Edge]:
    """The arrows that a result's evidence holds, each once, those that matter most first."""
    edges = [*_paths(result.evidence), *_sources(result), *_statements(result.evidence)]
    seen: dict[tuple[str, str, str], Edge] = {}
    for edge in edges:
        seen.setdefault(edge[:3], edge)
    return list(seen.values())


def node_kinds(result: RetrievalResult) -> dict[str, NodeKind]:
    """What the query names and what it implies, and which nodes are hits."""
    documents: dict[str, NodeKind] = {edge.tail: "document" for edge in _sources(result)}
    questions: dict[str, NodeKind] = {text: "question" for hit in result.hits for text in _questions(_items(hit))}
    return {**_named(result.evidence), **documents, **questions}


def _named(evidence: Mapping[str, Any]) -> dict[str, NodeKind]:
    kinds: dict[str, NodeKind] = {link["name"]: "query" for link in evidence.get("links", ())}
    for node in evidence.get("nodes", ()) if isinstance(evidence.get("nodes"), list) else ():
        kinds.setdefault(node["name"], "query" if node["kind"] == "explicit" else "implied")
    for own in evidence.get("members", {}).values():
        kinds = {**_named(own), **kinds}
    return kinds


def _paths(evidence: Mapping[str, Any]) -> Iterator[Edge]:
    for path in evidence.get("paths", ()):
        yield from (Edge(s["head"], s["relation"], s["tail"], "path") for s in path["steps"])
    for own in evidence.get("members", {}).values():
        yield from _paths(own)


def _statements(evidence: Mapping[str, Any]) -> Iterator[Edge]:
    """Triples and contexts, the most similar to the query first."""
    tables: tuple[tuple[str, EdgeKind], ...] = (("fused", "fused"), ("triples", "triple"))
    for name, kind in tables:
        triples = sorted(evidence.get(name, ()), key=lambda triple: -triple["similarity"])
        yield from (_edge(triple, kind) for triple in triples)
    for subgraph in evidence.get("subgraphs", ()):
        yield from (_edge(triple, "left out") for triple in subgraph["triples"])
    for entity in evidence.get("entities", ()):
        yield from _context(entity, "weak")
        yield from _context(entity, "strong")
    for own in evidence.get("members", {}).values():
        yield from _statements(own)


def _context(entity: Mapping[str, Any], kind: Literal["weak", "strong"]) -> Iterator[Edge]:
    yield from (Edge(entity["entity"], "", name, kind) for name in entity[kind] if name != entity["entity"])


def _edge(triple: Mapping[str, Any], kind: EdgeKind) -> Edge:
    return Edge(triple["head"], triple["relation"], triple["tail"], kind)


def _sources(result: RetrievalResult) -> Iterator[Edge]:
    """From what brought each hit to the hit: its question nodes, and the best triple, description or entity."""
    for rank, hit in enumerate(result.hits, start=1):
        items = _items(hit)
        heads = [*islice(filter(None, (_bringer(item, hit.title) for item in items)), 1), *_questions(items)]
        yield from (Edge(head, "", f"{rank}. {hit.document_id}", "source") for head in heads)


def _items(hit: Hit) -> list[Mapping[str, Any]]:
    """A hit's evidence, that of an ensemble's members included."""
    votes = (own for item in hit.evidence if item.get("kind") == "vote" for own in item["evidence"])
    return [*hit.evidence, *votes]


def _questions(items: Sequence[Mapping[str, Any]]) -> list[str]:
    texts = (item["question"] or item["sentence"] for item in items if item.get("kind") == "question node")
    return list(islice(dict.fromkeys(texts), QUESTIONS))


def _bringer(item: Mapping[str, Any], title: str) -> str:
    """The node from which an item of a hit's evidence leads to the hit; empty where it names none."""
    match item.get("kind"):
        case "description":
            return str(item["of"])
        case "triple":
            return _end(item, title)
        case "search" if item["joined_with"] == "triple":
            return _end(item, title)
        case "search" if item["joined_with"] == "entity":
            return str(item["item"])
    return ""


def _end(item: Mapping[str, Any], title: str) -> str:
    """The end of a triple that is a hit's title; else its head."""
    return str(item["tail"] if item["tail"] == title else item["head"])
