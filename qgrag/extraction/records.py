"""What extraction gives for one chunk, by rules on spaCy's parse or by a language model."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Generic, Literal, Protocol, TypeVar

from qgrag.corpus.records import Chunk

T = TypeVar("T")

ALSO_CALLED = "also called"
"""Relation of a name to another under which its own text speaks of it; the graph makes both one entity there."""


@dataclass(frozen=True, slots=True)
class QuestionAnswer:
    """A question that a chunk answers, and the sentence that holds the answer (QCG-RAG, section 3.3, step 1).

    A bare sentence (the paper's 'sentence node') has an empty question and answer.
    """

    question: str
    answer: str
    sentence: str


@dataclass(frozen=True, slots=True)
class Mention:
    """A named thing in a chunk: `chunk.text[start:end] == surface`; (-1, -1) where it stands in the title only."""

    surface: str
    type: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Triple:
    """A directed statement between two names, in the chunk's own words, and the sentence that says it."""

    head: str
    relation: str
    tail: str
    sentence: str = ""


@dataclass(frozen=True, slots=True)
class Description:
    """A sentence or passage that says something about an entity."""

    entity: str
    text: str


@dataclass(frozen=True, slots=True)
class Facts:
    """What a chunk says for the knowledge graph."""

    mentions: tuple[Mention, ...] = ()
    triples: tuple[Triple, ...] = ()
    descriptions: tuple[Description, ...] = ()


@dataclass(frozen=True, slots=True)
class Extracted(Generic[T]):
    """The outcome for one chunk; where nothing was found, it says why.

    Args:
        value: what was found.
        status: `ok`; `empty`: the chunk holds nothing of the kind; `failed`: it could not be processed and is
            tried again the next time the index is built.
        reason: why it is empty or failed.
        counts: what was dropped or repaired on the way, by kind.
    """

    value: T
    status: Literal["ok", "empty", "failed"] = "ok"
    reason: str = ""
    counts: dict[str, int] = field(default_factory=dict)


class QuestionGenerator(Protocol):
    """Chunks in, question-answer pairs out, in order."""

    @property
    def fingerprint(self) -> str:
        """Changes whenever the same chunk would give another result; part of the key of stored results."""
        ...

    def __call__(self, chunks: Sequence[Chunk]) -> list[Extracted[tuple[QuestionAnswer, ...]]]: ...


class FactExtractor(Protocol):
    """Chunks in, facts for the knowledge graph out, in order."""

    @property
    def fingerprint(self) -> str: ...

    def __call__(self, chunks: Sequence[Chunk]) -> list[Extracted[Facts]]: ...
