"""Which spellings in a corpus are one entity, by normal form and by the brackets of titles."""

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from qgrag.names.cleaning import clean_name
from qgrag.names.forms import without_case, without_spaces
from qgrag.names.titles import base_name
from qgrag.names.vocabulary import UNTYPED, VALUE_TYPES

TITLE_MARK = "\x1f"


class NameKeys:
    """The key of every name in a corpus.

    It is `without_spaces` of the name, except where documents with different titles share one ('Outlaw Express' and
    'The Outlaw Express'). Then each title has a key of its own, and a spelling that equals neither keeps the shared
    one.

    Args:
        titles: titles of the corpus, in any order, repeated or empty.
    """

    def __init__(self, titles: Iterable[str]) -> None:
        by_key: dict[str, set[str]] = {}
        for title in filter(None, map(clean_name, titles)):
            by_key.setdefault(without_spaces(title), set()).add(without_case(title))
        self._contested = {key: bearers for key, bearers in by_key.items() if len(bearers) > 1}

    def __call__(self, name: str) -> str:
        """The key of a spelling; empty where it holds no letter or number."""
        key = without_spaces(name)
        folded = without_case(clean_name(name)) if key in self._contested else ""
        return f"{key}{TITLE_MARK}{folded}" if folded in self._contested.get(key, ()) else key


@dataclass
class EntityName:
    """Spellings and types of one key, with how often each occurs."""

    surfaces: Counter[str] = field(default_factory=Counter)
    types: Counter[str] = field(default_factory=Counter)
    titles: set[str] = field(default_factory=set)

    @property
    def canonical(self) -> str:
        """A title if there is one, else the most frequent spelling; of equal ones the first by alphabet."""
        return min(self.titles or self.surfaces, key=lambda name: (-self.surfaces[name], name))

    @property
    def type(self) -> str:
        """The most frequent type that says something.

        The type of a value counts only where no other type was seen and no title has the name.
        """
        named = {kind: n for kind, n in self.types.items() if kind not in VALUE_TYPES and kind != UNTYPED}
        votes = named or ({} if self.titles else self.types)
        return min(votes, key=lambda kind: (-votes[kind], kind)) if votes else UNTYPED

    def absorb(self, other: "EntityName") -> None:
        self.surfaces.update(other.surfaces)
        self.types.update(other.types)
        self.titles |= other.titles


class EntityNames:
    """All names of a corpus by key, and for each merged key the one that stands for it."""

    def __init__(self, keys: NameKeys) -> None:
        self.keys = keys
        self.by_key: dict[str, EntityName] = {}
        self.joined: dict[str, str] = {}

    def add(self, surface: str, key: str, kind: str = "", *, title: bool = False) -> None:
        """Count a spelling of the name with this key; nothing happens where the key is empty."""
        shown = clean_name(surface)
        if key and shown:
            name = self.by_key.setdefault(key, EntityName())
            name.surfaces[shown] += 1
            if kind:
                name.types[kind] += 1
            if title:
                name.titles.add(shown)

    def join(self, kept: str, merged: str) -> None:
        """Let the key `kept` stand for `merged` from now on."""
        self.by_key[kept].absorb(self.by_key.pop(merged))
        self.joined[merged] = kept

    def resolve(self, key: str) -> str:
        """The key that stands for `key`: itself, or for a merged key the one that was kept."""
        while key in self.joined:
            key = self.joined[key]
        return key

    def bearers(self) -> dict[str, list[str]]:
        """Plain name -> the keys of the titles that it may mean: with a bracket, or spelt slightly differently."""
        found: dict[str, list[str]] = {}
        for key, name in sorted(self.by_key.items()):
            for plain in {self.keys(base_name(name.canonical)), without_spaces(name.canonical)} if name.titles else ():
                if plain and plain != key:
                    found.setdefault(plain, []).append(key)
        return found


def compatible_types(one: str, other: str) -> bool:
    """Whether two entities may be one: their types are equal, or one type is unknown."""
    return one == other or UNTYPED in (one, other)


def distinct_numbers(one: str, other: str) -> bool:
    """Whether two names differ in a number, a Roman numeral or a bracket, as 'Henry I' and 'Henry II' do."""
    return _marks(one) != _marks(other)


def _marks(name: str) -> list[str]:
    bracket = re.findall(r"\(([^()]*)\)\s*$", name)
    return sorted(re.findall(r"\d+|\b[IVXLC]+\b", name) + [part.casefold() for part in bracket])


def sorted_aliases(name: EntityName) -> list[str]:
    """Every spelling but the canonical one, sorted."""
    canonical = name.canonical
    return sorted(surface for surface in {*name.surfaces, *name.titles} if surface != canonical)
