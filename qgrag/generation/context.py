"""What a language model gets to read: numbered passages, and the views of a graph that a retriever gives."""

from collections.abc import Sequence
from dataclasses import dataclass

from qgrag.generation.graph_views import graph_views
from qgrag.llm.tokens import estimate_tokens, within_tokens
from qgrag.retrieval.evidence.base import Evidence, View
from qgrag.retrieval.results import Hit, RetrievalResult


@dataclass(frozen=True, slots=True)
class Context:
    """The material for one answer.

    Args:
        passages: number `i + 1` in the text stands for `passages[i]`.
        text: what is shown to the model.
    """

    passages: tuple[Hit, ...]
    text: str


def build_context(result: RetrievalResult, max_passages: int, max_tokens: int) -> Context:
    """Number the best hits of a result and set the retriever's views beside them.

    Views come first and get at most half of the estimated tokens. Hits follow until the rest is used up. The first
    hit is always there, so a chunk should be smaller than `max_tokens`.
    """
    views = _views(reader_views(result.evidence), max_tokens // 2)
    room = max_tokens - estimate_tokens(views)
    passages: list[Hit] = []
    blocks: list[str] = []
    for hit in result.hits[:max_passages]:
        block = _passage(len(passages) + 1, hit)
        room -= estimate_tokens(block)
        if passages and room < 0:
            break
        passages.append(hit)
        blocks.append(block)
    parts = [part for part in (views, "\n\n".join(blocks)) if part]
    return Context(tuple(passages), "\n\n".join(parts))


def reader_views(evidence: Evidence) -> list[View]:
    """The views that a record carries, or the views that are made of it; a view without lines is left out."""
    views = graph_views(evidence) if evidence.context is None else evidence.context
    return [view for view in views if view.lines]


def _passage(number: int, hit: Hit) -> str:
    head = f"[{number}] {hit.title}" if hit.title else f"[{number}]"
    return "\n".join(filter(None, (head, hit.header, hit.text)))


def _views(views: Sequence[View], max_tokens: int) -> str:
    blocks = []
    for view in views:
        head = f"{view.title} ({view.note}):" if view.note else f"{view.title}:"
        blocks.append(f"{head}\n{within_tokens(view.lines, max_tokens // len(views))}")
    return "\n\n".join(blocks)
