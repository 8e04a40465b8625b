"""The graph in a result's evidence: who is joined to whom, and why."""

from collections.abc import Iterator, Sequence
from functools import singledispatch
from itertools import islice
from typing import Literal, NamedTuple

from qgrag.retrieval.evidence.base import Evidence, GraphEvidence, Item
from qgrag.retrieval.evidence.items import (
    DescriptionItem,
    NamedTriple,
    QuestionNodeItem,
    SearchItem,
    TripleItem,
    VoteItem,
)
from qgrag.retrieval.evidence.records import (
    DualEvidence,
    EnsembleEvidence,
    FGEvidence,
    KGEvidence,
    QMKGFEvidence,
)
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


@singledispatch
def _named(evidence: Evidence) -> dict[str, NodeKind]:
    """The entities that the query names or implies."""
    return {}


@_named.register
def _(evidence: GraphEvidence) -> dict[str, NodeKind]:
    return {link.name: "query" for link in evidence.links}


@_named.register
def _(evidence: DualEvidence) -> dict[str, NodeKind]:
    kinds: dict[str, NodeKind] = {link.name: "query" for link in evidence.links}
    for node in evidence.nodes:
        kinds.setdefault(node.name, "query" if node.kind == "explicit" else "implied")
    return kinds


@_named.register
def _(evidence: EnsembleEvidence) -> dict[str, NodeKind]:
    kinds: dict[str, NodeKind] = {}
    for own in evidence.members.values():
        kinds = {**_named(own), **kinds}
    return kinds


@singledispatch
def _paths(evidence: Evidence) -> Iterator[Edge]:
    """The steps of paths."""
    yield from ()


@_paths.register
def _(evidence: DualEvidence) -> Iterator[Edge]:
    for path in evidence.paths:
        yield from (_edge(step, "path") for step in path.steps)


@_paths.register
def _(evidence: EnsembleEvidence) -> Iterator[Edge]:
    for own in evidence.members.values():
        yield from _paths(own)


@singledispatch
def _statements(evidence: Evidence) -> Iterator[Edge]:
    """Triples and contexts, the most similar to the query first."""
    yield from ()


@_statements.register
def _(evidence: DualEvidence | KGEvidence) -> Iterator[Edge]:
    yield from (_edge(triple, "triple") for triple in sorted(evidence.triples, key=lambda triple: -triple.similarity))


@_statements.register
def _(evidence: QMKGFEvidence) -> Iterator[Edge]:
    yield from (_edge(triple, "fused") for triple in sorted(evidence.fused, key=lambda triple: -triple.similarity))
    for subgraph in evidence.subgraphs:
        yield from (_edge(triple, "left out") for triple in subgraph.triples)


@_statements.register
def _(evidence: FGEvidence) -> Iterator[Edge]:
    for context in evidence.entities:
        own = context.entity
        yield from (Edge(own, "", name, "weak") for name in context.weak if name != own)
        yield from (Edge(own, "", name, "strong") for name in context.strong if name != own)


@_statements.register
def _(evidence: EnsembleEvidence) -> Iterator[Edge]:
    for own in evidence.members.values():
        yield from _statements(own)


def _edge(triple: NamedTriple, kind: EdgeKind) -> Edge:
    return Edge(triple.head, triple.relation, triple.tail, kind)


def _sources(result: RetrievalResult) -> Iterator[Edge]:
    """From what brought each hit to the hit: its question nodes, and the best triple, description or entity."""
    for rank, hit in enumerate(result.hits, start=1):
        items = _items(hit)
        heads = [*islice(filter(None, (_bringer(item, hit.title) for item in items)), 1), *_questions(items)]
        yield from (Edge(head, "", f"{rank}. {hit.document_id}", "source") for head in heads)


def _items(hit: Hit) -> list[Item]:
    """A hit's evidence, that of an ensemble's members included."""
    votes = (own for item in hit.evidence if isinstance(item, VoteItem) for own in item.evidence)
    return [*hit.evidence, *votes]


def _questions(items: Sequence[Item]) -> list[str]:
    texts = (item.question or item.sentence for item in items if isinstance(item, QuestionNodeItem))
    return list(islice(dict.fromkeys(texts), QUESTIONS))


def _bringer(item: Item, title: str) -> str:
    """The node from which an item of a hit's evidence leads to the hit; empty where it names none.

    Of a triple it is the end that is the hit's title, else the head.
    """
    match item:
        case DescriptionItem():
            return item.of
        case TripleItem():
            return item.tail if item.tail == title else item.head
        case SearchItem(head=str(head), tail=str(tail)):
            return tail if tail == title else head
        case SearchItem(joined_with="entity"):
            return item.item
    return ""
