"""Names of nearly the same spelling, through an inverted index over character trigrams."""

from collections.abc import Sequence

import numpy as np
from rapidfuzz import fuzz

_PAD = "\x00"


class SpellingIndex:
    """Near spellings among N names without comparing against each of them.

    A trigram index proposes the names that share the most trigrams, weighted by their rarity; `rapidfuzz` then scores
    these few. A look-up reads the postings of the name's trigrams.

    Args:
        names: normal forms; the row of a name is its position.
        candidates: how many names are scored exactly.
        max_share: share of the names above which a trigram counts as common; a look-up ignores common trigrams where
            the name has rarer ones.
    """

    def __init__(self, names: Sequence[str], *, candidates: int = 50, max_share: float = 0.02) -> None:
        self._names = list(names)
        self._candidates = candidates
        vocabulary: dict[str, int] = {}
        grams: list[int] = []
        owners: list[int] = []
        for row, name in enumerate(self._names):
            for gram in _trigrams(name):
                grams.append(vocabulary.setdefault(gram, len(vocabulary)))
                owners.append(row)
        self._vocabulary = vocabulary
        ids = np.asarray(grams, dtype=np.int64)
        order = np.argsort(ids, kind="stable")
        self._owners = np.asarray(owners, dtype=np.int32)[order]
        counts = np.bincount(ids, minlength=len(vocabulary))
        self._ptr = np.concatenate([[0], np.cumsum(counts)])
        self._common = max(1, int(max_share * len(self._names)))

    def __call__(self, name: str, cutoff: float, limit: int) -> list[tuple[int, float]]:
        """The names that are most like a given one.

        Args:
            name: a normal form.
            cutoff: least similarity, from 0 to 1 (`rapidfuzz.fuzz.ratio` / 100).
            limit: how many to return at most.

        Returns:
            (row, similarity) of each, best first, ties by row.
        """
        rows = self._propose(name)
        scored = [(row, fuzz.ratio(name, self._names[row]) / 100) for row in rows]
        return sorted((pair for pair in scored if pair[1] >= cutoff), key=lambda pair: (-pair[1], pair[0]))[:limit]

    def _propose(self, name: str) -> list[int]:
        """Rows of the `candidates` names that share the most trigrams; a trigram of n names weighs 1 / log2(2 + n)."""
        known = [self._vocabulary[gram] for gram in _trigrams(name) if gram in self._vocabulary]
        postings = [self._owners[self._ptr[gram] : self._ptr[gram + 1]] for gram in known]
        rare = [owners for owners in postings if len(owners) <= self._common] or postings
        if not rare:
            return []
        rows, place = np.unique(np.concatenate(rare), return_inverse=True)
        weights = np.concatenate([np.full(len(owners), 1 / np.log2(2 + len(owners))) for owners in rare])
        score = np.bincount(place, weights)
        return [int(row) for row in rows[np.argsort(-score, kind="stable")[: self._candidates]]]


def _trigrams(name: str) -> set[str]:
    padded = f"{_PAD}{name}{_PAD}"
    return {padded[i : i + 3] for i in range(max(1, len(padded) - 2))}
