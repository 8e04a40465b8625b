"""What every retriever returns: ranked chunks with the evidence that led to them."""

from dataclasses import dataclass, field
from typing import Any

from qgrag.retrieval.evidence.base import Evidence, Item, Part


@dataclass(frozen=True, slots=True)
class Hit(Part):
    """One retrieved chunk.

    Args:
        chunk_id: id of the chunk, `{document_id}-{position}`.
        document_id: the document that the chunk was cut from.
        document_ids: every id under which this very document is known (duplicates by content), `document_id` first.
        start: first character of the chunk in the document's text.
        end: one past its last character.
        score: higher is better; comparable within one result only.
        text: the chunk's text.
        title: the document's title.
        evidence: what brought this chunk.
        header: header row of the table that the chunk continues; None for most chunks.
    """

    chunk_id: str
    document_id: str
    document_ids: tuple[str, ...]
    start: int
    end: int
    score: float
    text: str
    title: str = ""
    evidence: tuple[Item, ...] = ()
    header: str | None = None


@dataclass(frozen=True, slots=True)
class RetrievalResult(Part):
    """The answer of one retriever to one query.

    Args:
        query: the query as given.
        retriever: registered name of the retriever.
        hits: best first, scores never rising.
        evidence: what the retriever tells of the query as a whole (linked entities, subgraphs, fallbacks).
        usage: LLM calls, tokens and seconds by step, empty where no LLM was asked.
    """

    query: str
    retriever: str
    hits: tuple[Hit, ...]
    evidence: Evidence = field(default_factory=Evidence)
    usage: dict[str, Any] = field(default_factory=dict)
