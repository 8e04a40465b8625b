"""Every place where one of many names stands in a text."""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from qgrag.names.forms import NameToken

K = TypeVar("K", bound=Hashable)


@dataclass(frozen=True, slots=True)
class NameMatch(Generic[K]):
    """A name found in a text: tokens `first` to `last - 1`, characters `start` to `end - 1`."""

    value: K
    first: int
    last: int
    start: int
    end: int


class NameMatcher(Generic[K]):
    """Finds many names in a text at once.

    It holds a table from token sequence to value, and for each first token the lengths that occur. A text of n
    tokens costs O(n L) look-ups, whatever the number of names; L is the number of lengths that begin with one token.

    Args:
        names: token sequence (`words_only`) -> value.
    """

    def __init__(self, names: Mapping[tuple[str, ...], K]) -> None:
        self._values = {key: value for key, value in names.items() if key}
        lengths: dict[str, set[int]] = {}
        for key in self._values:
            lengths.setdefault(key[0], set()).add(len(key))
        self._lengths = {first: sorted(found, reverse=True) for first, found in lengths.items()}

    def __len__(self) -> int:
        return len(self._values)

    def longest(self, tokens: Sequence[NameToken]) -> list[NameMatch[K]]:
        """The matches of `all` that `longest_first` keeps."""
        return longest_first(self.all(tokens))

    def all(self, tokens: Sequence[NameToken]) -> list[NameMatch[K]]:
        """Every match, overlapping ones too, in the order of their first tokens, longer ones first."""
        forms = [token.form for token in tokens]
        found = []
        for first, token in enumerate(tokens):
            starts = {token.form, token.bare}
            lengths = {length for start in starts for length in self._lengths.get(start, ())}
            for length in sorted(lengths, reverse=True):
                last = first + length
                if last > len(tokens):
                    continue
                if match := self._match(forms, tokens, first, last):
                    found.append(match)
        return found

    def _match(self, forms: list[str], tokens: Sequence[NameToken], first: int, last: int) -> NameMatch[K] | None:
        end = tokens[last - 1]
        words = tuple(forms[first:last])
        if words in self._values:
            return NameMatch(self._values[words], first, last, tokens[first].start, end.end)
        words = (*words[:-1], end.bare)
        if words in self._values:
            return NameMatch(self._values[words], first, last, tokens[first].start, end.bare_end)
        return None


def longest_first(matches: Iterable[NameMatch[K]]) -> list[NameMatch[K]]:
    """Matches without overlaps, in text order: of two that overlap the longer stays, of equal ones the first."""
    taken: set[int] = set()
    chosen = []
    for match in sorted(matches, key=lambda m: (m.first - m.last, m.first)):
        span = range(match.first, match.last)
        if taken.isdisjoint(span):
            taken.update(span)
            chosen.append(match)
    return sorted(chosen, key=lambda m: m.first)
