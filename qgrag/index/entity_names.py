"""Which spellings in the facts of a corpus are one entity, by normal form and by title brackets."""

import re
from collections import Counter
from dataclasses import dataclass, field
from functools import lru_cache

from qgrag.extraction.name_spans import VALUE_TYPES
from qgrag.extraction.names import clean_name, name_key
from qgrag.extraction.topic import base_name

UNTYPED = "OTHER"
_SPACE = re.compile(r"(?<!\d) | (?!\d)")


@lru_cache(maxsize=2**18)
def entity_key(name: str) -> str:
    """The identity of a name: `name_key` without spaces, save between digits, so that 'LiHua' is 'Li Hua'.

    Empty where no letter or number is left.
    """
    return _SPACE.sub("", name_key(name))


@lru_cache(maxsize=2**18)
def _shown(name: str) -> str:
    return clean_name(name)


@dataclass
class EntityName:
    """Spellings and types of one key, with how often each occurs."""

    surfaces: Counter[str] = field(default_factory=Counter)
    types: Counter[str] = field(default_factory=Counter)
    titles: set[str] = field(default_factory=set)

    @property
    def canonical(self) -> str:
        """A title if there is one, else the most frequent spelling; equal ones by alphabet."""
        return min(self.titles or self.surfaces, key=lambda name: (-self.surfaces[name], name))

    @property
    def type(self) -> str:
        """The most frequent type that says something; a value's only where nothing else was seen."""
        named = {kind: n for kind, n in self.types.items() if kind not in VALUE_TYPES and kind != UNTYPED}
        votes = named or self.types
        return min(votes, key=lambda kind: (-votes[kind], kind)) if votes else UNTYPED

    def absorb(self, other: "EntityName") -> None:
        self.surfaces.update(other.surfaces)
        self.types.update(other.types)
        self.titles |= other.titles


class EntityNames:
    """All names of a corpus by key, and which key each one came to stand for."""

    def __init__(self) -> None:
        self.by_key: dict[str, EntityName] = {}
        self.joined: dict[str, str] = {}

    def add(self, surface: str, kind: str = "", *, title: bool = False) -> str:
        """Count a spelling; returns its key, empty for what is no name."""
        shown = _shown(surface)
        key = entity_key(shown)
        if key:
            name = self.by_key.setdefault(key, EntityName())
            name.surfaces[shown] += 1
            if kind:
                name.types[kind] += 1
            if title:
                name.titles.add(shown)
        return key

    def join(self, kept: str, merged: str) -> None:
        """Let the key `merged` stand for `kept` from now on."""
        self.by_key[kept].absorb(self.by_key.pop(merged))
        self.joined[merged] = kept

    def resolve(self, key: str) -> str:
        """The key that `key` stands for; a merged key leads to a kept one in one step or in a few."""
        while key in self.joined:
            key = self.joined[key]
        return key

    def bearers(self) -> dict[str, list[str]]:
        """Titled keys with a bracket, by the key of the name without it."""
        found: dict[str, list[str]] = {}
        for key, name in sorted(self.by_key.items()):
            if name.titles:
                plain = entity_key(base_name(name.canonical))
                if plain and plain != key:
                    found.setdefault(plain, []).append(key)
        return found


def compatible_types(one: str, other: str) -> bool:
    """Whether two entities may be one by type: equal, or one of them unknown."""
    return one == other or UNTYPED in (one, other)


def distinct_numbers(one: str, other: str) -> bool:
    """Whether two names differ in a number, a Roman numeral or a bracket, as 'Henry I' and 'Henry II' do."""
    return _marks(one) != _marks(other)


def _marks(name: str) -> list[str]:
    bracket = re.findall(r"\(([^()]*)\)\s*$", name)
    return sorted(re.findall(r"\d+|\b[IVXLC]+\b", name) + [part.casefold() for part in bracket])


def sorted_aliases(name: EntityName) -> list[str]:
    canonical = name.canonical
    return sorted(surface for surface in {*name.surfaces, *name.titles} if surface != canonical)
