"""Which words of a query can be a name."""

from collections.abc import Sequence
from typing import Any

from spacy.lang.en.stop_words import STOP_WORDS

from qgrag.names.forms import NameToken
from qgrag.names.matching import NameMatch
from qgrag.names.vocabulary import PARTICLES


def can_be_name(match: NameMatch[Any], tokens: Sequence[NameToken]) -> bool:
    """Whether a match can be meant as a name.

    Function words alone are one only as several capitalised words, or in capitals (`the WHO`) where the query's other
    words are not.
    """
    words = tokens[match.first : match.last]
    if all(word.capitals for word in words) and not all(t.capitals for t in tokens if t.form not in STOP_WORDS):
        return True
    if all(word.form in STOP_WORDS or len(word.form) < 2 for word in words):
        return len(words) > 2 and all(word.cased for word in words)
    return any(len(word.form) > 2 or word.cased for word in words)


def has_capital(match: NameMatch[Any], tokens: Sequence[NameToken]) -> bool:
    """Whether a match has a capital that is not just that of the query's first word."""
    return any(token.cased for token in tokens[max(match.first, 1) : match.last])


def unmatched_names(tokens: Sequence[NameToken], matches: Sequence[NameMatch[Any]]) -> list[tuple[int, int]]:
    """Runs of capitalised words that no match covers, with the particles between them, as spans [start, end)."""
    covered = {i for match in matches for i in range(match.first, match.last)}
    runs: list[list[NameToken]] = [[]]
    for i, token in enumerate(tokens):
        opens = token.cased and token.form not in STOP_WORDS
        joins = token.form in PARTICLES and runs[-1]
        if i not in covered and (opens or joins):
            runs[-1].append(token)
        elif runs[-1]:
            runs.append([])
    spans = []
    for run in runs:
        while run and run[-1].form in PARTICLES:
            run.pop()
        if run:
            spans.append((run[0].start, run[-1].end))
    return spans
