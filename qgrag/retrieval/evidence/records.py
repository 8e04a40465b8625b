"""What each method tells of a query as a whole."""

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Literal

from qgrag.retrieval.evidence.base import Evidence, GraphEvidence, Part, in_memory
from qgrag.retrieval.evidence.items import NamedTriple, PathItem, TripleItem


@dataclass(frozen=True, slots=True)
class D2QEvidence(Evidence):
    """Doc2Query and Doc2Query--.

    Args:
        expanded_by: what was appended to each chunk.
    """

    expanded_by: str


@dataclass(frozen=True, slots=True)
class QCGEvidence(Evidence):
    """QCG-RAG.

    Args:
        nodes: question nodes retrieved.
        expanded: further nodes that their edges led to.
    """

    nodes: int
    expanded: int


@dataclass(frozen=True, slots=True)
class KGEvidence(GraphEvidence):
    """LLM + graph.

    Args:
        triples: around the entities, the most similar to the query first.
    """

    triples: tuple[TripleItem, ...]


@dataclass(frozen=True, slots=True)
class EntityNode(Part):
    """An entity that DualGraphRAG starts at.

    Args:
        name: of the entity.
        kind: `explicit`: named in the query; `implicit`: only hinted at; `namesake`: a title that a plain name may
            mean.
        weight: of the entity's triples in the scores.
        entity_row: row in the knowledge graph.
    """

    name: str
    kind: Literal["explicit", "implicit", "namesake"]
    weight: float
    _: KW_ONLY
    entity_row: int = in_memory(-1)


@dataclass(frozen=True, slots=True)
class DualEvidence(GraphEvidence):
    """DualGraphRAG: both of its views.

    Args:
        nodes: explicit, then implicit, then namesakes.
        triples: around them, each once, by node.
        paths: the shortest between them.
    """

    nodes: tuple[EntityNode, ...]
    triples: tuple[TripleItem, ...]
    paths: tuple[PathItem, ...]


@dataclass(frozen=True, slots=True)
class EntityContext(Part):
    """FG-RAG's context of one entity of the query.

    Args:
        entity: name.
        weak: names of E_w, the entity first.
        strong: names of E_s, those of E_w left out.
        reached: entities reached from both.
        questions: asked about the entity in the light of the query.
        summary: of the descriptions; empty where summaries are off.
        entity_row: row in the knowledge graph.
        weak_rows: rows of `weak`.
        strong_rows: rows of `strong`.
    """

    entity: str
    weak: tuple[str, ...]
    strong: tuple[str, ...]
    reached: int
    questions: tuple[str, ...]
    summary: str
    _: KW_ONLY
    entity_row: int = in_memory(-1)
    weak_rows: tuple[int, ...] = in_memory(())
    strong_rows: tuple[int, ...] = in_memory(())


@dataclass(frozen=True, slots=True)
class FGEvidence(GraphEvidence):
    """FG-RAG.

    Args:
        entities: one context for each link.
    """

    entities: tuple[EntityContext, ...]


@dataclass(frozen=True, slots=True)
class Subgraph(Part):
    """One of QMKGF's three subgraphs.

    Args:
        kind: `one-hop`, `multi-hop` or `importance`.
        score: of the reward model or by cosine; None for one without triples.
        nodes: names, the query's own entities first.
        triples: among them.
        node_rows: rows of `nodes` in the knowledge graph.
    """

    kind: str
    score: float | None
    nodes: tuple[str, ...]
    triples: tuple[NamedTriple, ...]
    _: KW_ONLY
    node_rows: tuple[int, ...] = in_memory(())


@dataclass(frozen=True, slots=True)
class FusedTriple(NamedTriple):
    """A triple of QMKGF's fused subgraph.

    Args:
        similarity: cosine with the query.
        added: whether it came from a subgraph other than the winner.
    """

    similarity: float
    added: bool

    @property
    def line(self) -> str:
        """The triple in one line."""
        return f"{self.arrow}  [{self.similarity:.2f}]"


@dataclass(frozen=True, slots=True)
class QMKGFEvidence(GraphEvidence):
    """QMKGF.

    Args:
        scorer: what scored the subgraphs.
        subgraphs: one of each kind.
        winner: kind of the best one; None where all are empty, or the strategy prefers none.
        threshold: tau, the least similarity of a triple that another subgraph adds.
        fused: the triples that expand the query, the most similar to it first.
    """

    scorer: str
    subgraphs: tuple[Subgraph, ...]
    winner: str | None
    threshold: float
    fused: tuple[FusedTriple, ...]


@dataclass(frozen=True, slots=True)
class EnsembleEvidence(Evidence):
    """An ensemble.

    Args:
        members: each member's own record, by its name in the configuration.
    """

    members: Mapping[str, Evidence]


@dataclass(frozen=True, slots=True)
class AutoEvidence(EnsembleEvidence):
    """`auto`.

    Args:
        pool: number of candidates that the evidence model chose from.
        left_out: members that the index cannot serve, or that the configuration leaves out.
    """

    pool: int
    left_out: tuple[str, ...]
