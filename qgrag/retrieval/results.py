"""What every retriever returns: ranked chunks with the evidence that led to them."""

from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Hit:
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
        evidence: JSON-serialisable items that brought this chunk, each a dict with a `kind`.
    """

    chunk_id: str
    document_id: str
    document_ids: tuple[str, ...]
    start: int
    end: int
    score: float
    text: str
    title: str = ""
    evidence: tuple[dict[str, Any], ...] = ()


@dataclass(frozen=True, slots=True)
class RetrievalResult:
    """The answer of one retriever to one query.

    Args:
        query: the query as given.
        retriever: registered name of the retriever.
        hits: best first, scores never rising.
        evidence: JSON-serialisable facts about the query as a whole (linked entities, subgraphs, fallbacks).
        usage: LLM calls, tokens and seconds by step, empty where no LLM was asked.
    """

    query: str
    retriever: str
    hits: tuple[Hit, ...]
    evidence: dict[str, Any] = field(default_factory=dict)
    usage: dict[str, Any] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Plain dicts, lists, strings and numbers, ready for `json.dumps`."""
        return asdict(self)
