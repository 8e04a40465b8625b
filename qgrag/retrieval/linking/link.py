"""A link: the entity that a part of a query means, and how it was found."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from torch import Tensor

How = Literal["exact", "alias", "fuzzy", "embedding"]
Encode = Callable[[Sequence[str]], Tensor]
"""Names -> unit vectors, float32 [n, d], as the graph's names were encoded."""


@dataclass(frozen=True, slots=True)
class Link:
    """An entity that a part of a query means.

    Args:
        surface: the query's own words.
        start: first character in the query; -1 for a name that was not read off the query's text.
        end: one past the last; -1 likewise.
        entity: row in the knowledge graph.
        name: its canonical name.
        how: `exact`: the canonical name, by its key or as a title; `alias`: another spelling of it, or its name
            without the bracket or the comma suffix; `fuzzy`: a name of nearly the same spelling; `embedding`: the
            nearest name by cosine.
        score: from 0 to 1; 1 for exact, 0.95 for another spelling, 0.9 for a short form; for a near spelling, the
            score of that spelling times the similarity; for the nearest name, the cosine.
    """

    surface: str
    start: int
    end: int
    entity: int
    name: str
    how: How
    score: float

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def distinct(links: Iterable[Link]) -> list[Link]:
    """The links in order; of links to one entity only the first."""
    seen: dict[int, Link] = {}
    for link in links:
        seen.setdefault(link.entity, link)
    return list(seen.values())
