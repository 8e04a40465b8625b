"""What brings a hit, method by method. Rows of the index stay in memory and are -1 or empty in what is read back."""

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Literal

from qgrag.retrieval.evidence.base import Item, Part, in_memory
from qgrag.retrieval.evidence.text import shortened


@dataclass(frozen=True, slots=True)
class NamedTriple(Part):
    """A triple of the knowledge graph by its names.

    Args:
        head: name.
        relation: as the text has it.
        tail: name.
        triple_row: row among the graph's triples.
        head_row: row among its entities.
        tail_row: likewise.
    """

    head: str
    relation: str
    tail: str
    _: KW_ONLY
    triple_row: int = in_memory(-1)
    head_row: int = in_memory(-1)
    tail_row: int = in_memory(-1)

    @property
    def arrow(self) -> str:
        """Film —directed by→ Ada."""
        return f"{self.head} —{self.relation}→ {self.tail}"


@dataclass(frozen=True, slots=True)
class SourcedTriple(NamedTriple):
    """A triple with the chunks that say it.

    Args:
        chunks: their ids.
        chunk_rows: their rows in the index.
    """

    chunks: tuple[str, ...]
    _: KW_ONLY
    chunk_rows: tuple[int, ...] = in_memory(())


@dataclass(frozen=True, slots=True)
class TripleItem(Item, SourcedTriple):
    """A triple around an entity of the query (DualGraphRAG, LLM + graph).

    Args:
        similarity: of the triple to the query: cosine of its relation (dual) or of its whole text (kg).
    """

    kind = "triple"
    similarity: float

    @property
    def line(self) -> str:
        chunks = f"  in {', '.join(self.chunks[:3])}" if self.chunks else ""
        return f"{self.arrow}  [{self.similarity:.2f}]{chunks}"


@dataclass(frozen=True, slots=True)
class PathStep(SourcedTriple):
    """One triple of a path.

    Args:
        forward: whether the path goes from the triple's head to its tail.
    """

    forward: bool


@dataclass(frozen=True, slots=True)
class PathItem(Item):
    """A shortest path between two entities of the query (DualGraphRAG).

    Args:
        steps: from one end to the other.
    """

    kind = "path"
    steps: tuple[PathStep, ...]

    @property
    def line(self) -> str:
        return path_text(self.steps)


def path_text(steps: Sequence[PathStep]) -> str:
    """A path from its first node to its last, each arrow pointing from its triple's head to its tail."""
    if not steps:
        return ""
    text = steps[0].head if steps[0].forward else steps[0].tail
    for step in steps:
        text += f" —{step.relation}→ {step.tail}" if step.forward else f" ←{step.relation}— {step.head}"
    return text


@dataclass(frozen=True, slots=True)
class QuestionNodeItem(Item):
    """A node of the query graph that stands for the hit's chunk (QCG-RAG).

    Args:
        id: of the node: its chunk's id and its number in the chunk.
        question: generated from the chunk; empty for a node that is a sentence.
        answer: to the question.
        sentence: that the question is about.
        hop: 0 for a retrieved node, else its distance from one.
        score: what ranks the node's chunks.
        node_row: row among the query graph's nodes.
        chunk_row: row of the chunk that the id names.
    """

    kind = "question node"
    id: str
    question: str
    answer: str
    sentence: str
    hop: int
    score: float
    _: KW_ONLY
    node_row: int = in_memory(-1)
    chunk_row: int = in_memory(-1)

    @property
    def line(self) -> str:
        question = f"{self.question} {self.answer}".strip() or self.sentence
        return f"{shortened(question)}  [hop {self.hop}, {self.score:.3f}]"


@dataclass(frozen=True, slots=True)
class DescriptionItem(Item):
    """A description of an entity that the hit's chunk gives (FG-RAG).

    Args:
        entity: the query's entity in whose context the description stands.
        of: the entity that is described.
        text: the description.
        weight: of the described entity in the context.
        relevance: of the description to the query.
        chunk: id of the chunk that gives it.
        entity_row: row of `entity` in the knowledge graph.
        of_row: row of `of`.
        chunk_row: row of the chunk.
    """

    kind = "description"
    entity: str
    of: str
    text: str
    weight: float
    relevance: float
    chunk: str
    _: KW_ONLY
    entity_row: int = in_memory(-1)
    of_row: int = in_memory(-1)
    chunk_row: int = in_memory(-1)

    @property
    def line(self) -> str:
        return f"{self.of}: {shortened(self.text)}  [{self.weight:.2f} x {self.relevance:.2f}]"


@dataclass(frozen=True, slots=True)
class SearchItem(Item):
    """The search that found the hit (QMKGF).

    Args:
        joined_with: what the query was joined with; empty for the query itself.
        item: the text of that.
        head: of a triple; None else.
        tail: likewise.
        item_row: row among the graph's entities, relations or triples, by `joined_with`.
        head_row: row of the head among the entities.
        tail_row: likewise.
    """

    kind = "search"
    joined_with: Literal["", "entity", "relation", "triple"]
    item: str
    head: str | None = None
    tail: str | None = None
    _: KW_ONLY
    item_row: int = in_memory(-1)
    head_row: int = in_memory(-1)
    tail_row: int = in_memory(-1)

    @property
    def line(self) -> str:
        return f"found by query + {self.joined_with} '{self.item}'" if self.joined_with else "found by the query itself"


@dataclass(frozen=True, slots=True)
class VoteItem(Item):
    """The place that a member of an ensemble gave the hit.

    Args:
        retriever: the member, as the ensemble's configuration names it.
        rank: from 1.
        evidence: the member's own items.
    """

    kind = "vote"
    retriever: str
    rank: int
    evidence: tuple[Item, ...]

    @property
    def line(self) -> str:
        why = "; ".join(item.line for item in self.evidence[:2])
        return f"{self.retriever} ranks it {self.rank}" + (f": {why}" if why else "")


@dataclass(frozen=True, slots=True)
class RerankItem(Item):
    """The place that the hit had before re-ranking.

    Args:
        cross_encoder: that re-ranked it.
        first: name of the retriever that found it.
        rank: its place there, from 1.
        score: its score there.
    """

    kind = "rerank"
    cross_encoder: str
    first: str
    rank: int
    score: float


@dataclass(frozen=True, slots=True)
class Contribution(Part):
    """One feature's part in a candidate's score.

    Args:
        feature: its name.
        value: gradient of the logit times the feature's distance from its mean over the training pools.
    """

    feature: str
    value: float


@dataclass(frozen=True, slots=True)
class ReasonItem(Item):
    """Why the evidence model ranks a hit where it does (`auto`).

    Args:
        probability: that the hit is evidence, by the model; None where no model was asked and reciprocal ranks decide.
        sentences: of the hit, the nearest to the question first.
        contributions: the features that moved its score most; empty beyond the hits that are asked about.
    """

    kind = "reason"
    probability: float | None
    sentences: tuple[str, ...]
    contributions: tuple[Contribution, ...]

    @property
    def line(self) -> str:
        moved = ", ".join(f"{c.feature} {c.value:+.2f}" for c in self.contributions[:4])
        told = f": {shortened(self.sentences[0])}" if self.sentences else ""
        if self.probability is None:
            return f"by reciprocal ranks{told}"
        return f"evidence with probability {self.probability:.2f}" + (f" ({moved})" if moved else "") + told
