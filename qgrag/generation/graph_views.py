"""What a graph retriever found, as views for the reader: statements as they are, with a line on what a view means."""

from collections.abc import Iterable, Mapping
from typing import Any

View = dict[str, Any]


def graph_views(evidence: Mapping[str, Any]) -> list[View]:
    """Views of a result's evidence, best first; empty for a retriever without a graph.

    Triples keep their direction. A path shows each edge in its own direction, whichever way it was walked
    (DualGraphRAG, section 3.4). Summaries stand under the entity that they are about (FG-RAG, section 3.3).

    Args:
        evidence: `RetrievalResult.evidence` with `triples`, `paths`, or `entities` that have a `summary`.

    Returns:
        Dicts with `title`, `note` and `lines`, as `qgrag.generation.context` takes them.
    """
    triples = [_triple(item) for item in _by_similarity(evidence.get("triples", ()))]
    paths = [_path(item["steps"]) for item in evidence.get("paths", ())]
    summaries = [f"{item['entity']}: {item['summary']}" for item in evidence.get("entities", ()) if item.get("summary")]
    views = (
        ("Statements", "what is said of the entities of the question, as head | relation | tail", triples),
        ("Paths", "shortest connections between them, each arrow in the direction of its statement", paths),
        ("Summaries", "what is told of each entity of the question, in its light", summaries),
    )
    return [{"title": title, "note": note, "lines": lines} for title, note, lines in views if lines]


def _by_similarity(triples: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    return sorted(triples, key=lambda item: -item.get("similarity", 0.0))


def _triple(item: Mapping[str, Any]) -> str:
    return f"{item['head']} | {item['relation']} | {item['tail']}"


def _path(steps: Iterable[Mapping[str, Any]]) -> str:
    text = ""
    for step in steps:
        near, far = (step["head"], step["tail"]) if step["forward"] else (step["tail"], step["head"])
        arrow = f" -[{step['relation']}]-> " if step["forward"] else f" <-[{step['relation']}]- "
        text = (text or near) + arrow + far
    return text
