"""Where a text says what a language model claims."""

from collections.abc import Iterable

import regex

from qgrag.corpus.scripts import UNSPACED
from qgrag.corpus.sentences import split_sentences
from qgrag.names.cleaning import find_name
from qgrag.names.forms import without_case

_UNITS = regex.compile(rf"[{UNSPACED}]\p{{M}}*|[[\p{{L}}\p{{N}}\p{{M}}_]--[{UNSPACED}]]+", regex.V1)


def one_line(text: str) -> str:
    """The text with each run of white space as one space."""
    return " ".join(text.split())


def share_found(claim: str, source: str) -> float:
    """Share of a claim's characters, from 0 to 1, that stand in words which the source has too.

    In the scripts `UNSPACED` each character counts as a word. The share is 1 where the source has all of the
    claim's words in a row, however they are spaced, and for a claim without words.
    """
    units, known = _UNITS.findall(without_case(claim)), _UNITS.findall(without_case(source))
    if "".join(units) in "".join(known):
        return 1.0
    found = set(known)
    return sum(len(u) for u in units if u in found) / sum(map(len, units))


def supporting_sentence(text: str, names: Iterable[str], claim: str = "") -> str:
    """The sentence of a text that names the most of `names`, and of those the one most like the claim.

    Likeness is the number of words (characters, in scripts without spaces) that the two share. Empty where no
    sentence has anything of either.
    """
    wanted = [name for name in names if name]
    words = set(_UNITS.findall(without_case(claim)))

    def score(sentence: str) -> tuple[int, int]:
        named = sum(find_name(name, sentence) is not None for name in wanted)
        return named, len(words & set(_UNITS.findall(without_case(sentence))))

    sentences = [text[start:end] for start, end in split_sentences(text)]
    best = max(sentences, key=score, default="")
    return best if best and score(best) > (0, 0) else ""
