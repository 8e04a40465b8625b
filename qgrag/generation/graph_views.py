"""What a graph retriever found, as views for the reader: statements as they are, with a line on what a view means."""

from collections.abc import Sequence
from functools import singledispatch

from qgrag.retrieval.evidence.base import Evidence, View
from qgrag.retrieval.evidence.items import PathStep, TripleItem
from qgrag.retrieval.evidence.records import DualEvidence, FGEvidence, KGEvidence


@singledispatch
def graph_views(evidence: Evidence) -> list[View]:
    """Views of a result's evidence, best first; empty for a retriever without a graph.

    Triples keep their direction. A path shows each edge in its own direction, whichever way it was walked
    (DualGraphRAG, section 3.4). Summaries stand under the entity that they are about (FG-RAG, section 3.3).
    """
    return []


@graph_views.register
def _(evidence: KGEvidence) -> list[View]:
    return _filled(_statements(evidence.triples))


@graph_views.register
def _(evidence: DualEvidence) -> list[View]:
    note = "shortest connections between them, each arrow in the direction of its statement"
    paths = tuple(_path(path.steps) for path in evidence.paths)
    return _filled(_statements(evidence.triples), View("Paths", paths, note))


@graph_views.register
def _(evidence: FGEvidence) -> list[View]:
    summaries = tuple(f"{entity.entity}: {entity.summary}" for entity in evidence.entities if entity.summary)
    return _filled(View("Summaries", summaries, "what is told of each entity of the question, in its light"))


def _filled(*views: View) -> list[View]:
    return [view for view in views if view.lines]


def _statements(triples: Sequence[TripleItem]) -> View:
    best = sorted(triples, key=lambda triple: -triple.similarity)
    lines = tuple(f"{triple.head} | {triple.relation} | {triple.tail}" for triple in best)
    return View("Statements", lines, "what is said of the entities of the question, as head | relation | tail")


def _path(steps: Sequence[PathStep]) -> str:
    text = ""
    for step in steps:
        near, far = (step.head, step.tail) if step.forward else (step.tail, step.head)
        arrow = f" -[{step.relation}]-> " if step.forward else f" <-[{step.relation}]- "
        text = (text or near) + arrow + far
    return text
