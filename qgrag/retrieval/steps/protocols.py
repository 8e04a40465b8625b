"""The steps that a query goes through, as callables: rules and language models stand in for each other.

Every step is batched: the sequences run in parallel, one row per query (or per query-entity pair), and the answer
has as many rows, in order. A row for which nothing could be found is empty; a step does not raise for the
sake of a single row.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from qgrag.extraction.records import Triple


@dataclass(frozen=True, slots=True)
class QueryEntitySet:
    """What a query is about (DualGraphRAG, section 3.3.1), cleaned by `clean_name`, without repeats.

    Args:
        explicit: entities that the query names, in its own wording.
        enhanced: further nouns that its reasoning needs, such as 'director' in 'Who directed ...?'.
    """

    explicit: tuple[str, ...] = ()
    enhanced: tuple[str, ...] = ()


class QueryEntities(Protocol):
    """Queries in, the entities of each out; None where a query could not be read."""

    def __call__(self, queries: Sequence[str]) -> Sequence[QueryEntitySet | None]: ...


class ImplicitNodes(Protocol):
    """Choose the nodes that a query only hints at (DualGraphRAG, section 3.3.1, node enhancement)."""

    def __call__(
        self,
        queries: Sequence[str],
        nodes: Sequence[Sequence[str]],
        triples: Sequence[Sequence[Triple]],
    ) -> list[list[str]]:
        """Args:
            queries: B questions.
            nodes: per query, the names of the nodes already aligned.
            triples: per query, the one-hop triples of these nodes.

        Returns:
            Per query the chosen names, best first: each is a head or tail of its triples, none in its nodes.
        """
        ...


class EntityQuestions(Protocol):
    """Ask what a user might want to know of an entity in the light of a query (FG-RAG, section 3.3)."""

    def __call__(self, queries: Sequence[str], entities: Sequence[str]) -> list[list[str]]:
        """P query-entity pairs, as two sequences of length P, in; per pair its questions out."""
        ...


class EntitySummaries(Protocol):
    """Summarise what is known of an entity in the light of a query (FG-RAG, section 3.3)."""

    def __call__(
        self,
        queries: Sequence[str],
        entities: Sequence[str],
        descriptions: Sequence[Sequence[str]],
        questions: Sequence[Sequence[str]],
    ) -> list[str]:
        """Args:
            queries: P queries, one per query-entity pair.
            entities: P entities.
            descriptions: per pair the descriptions found for it, best first.
            questions: per pair the questions asked about it; may be empty.

        Returns:
            P summaries; empty where there was nothing to summarise.
        """
        ...
