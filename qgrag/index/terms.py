"""Search terms of a text in any language."""

import re
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise

import regex
import Stemmer

from qgrag.corpus.scripts import SOUTHEAST_ASIAN, UNSPACED
from qgrag.corpus.searchable import searchable

TOKENISER = 2
"""Version of `terms`. An index keeps the version that made its postings, and its queries are cut by the same one."""

_LUCENE_WORDS = (
    "a an and are as at be but by for if in into is it no not of on or such that the their then there these they this "
    "to was will with"
)
_QUESTION_WORDS = (
    "what who whom whose when where which why how do does did have has had can could should would about from been "
    "being were so i me my you your he him his she her we us our its them"
)
STOP_WORDS = frozenset(_LUCENE_WORDS.split()) | frozenset(_QUESTION_WORDS.split())

_WORD = rf"[[\p{{L}}\p{{N}}]--[{UNSPACED}]][[\p{{L}}\p{{N}}\p{{M}}]--[{UNSPACED}]]*"
_RUNS = regex.compile(
    rf"(?P<unspaced>[{UNSPACED}](?:[{UNSPACED}]|\p{{M}})*)"
    rf"|{_WORD}(?P<cut>(?:[-\u2010][ \t]*\r?\n[ \t]*(?=\p{{Ll}}){_WORD})*)",
    regex.V1,
)
_CHARACTERS = regex.compile(rf"[{SOUTHEAST_ASIAN}]\p{{M}}*|.", regex.S)
_LINE_END_HYPHEN = regex.compile(r"[-\u2010]\s+")
_HEBREW_ABBREVIATION = regex.compile(r"(?<=\p{Hebrew})[\"'\u05f3\u05f4\u2019\u201d](?=\p{Hebrew})")
_CAPITAL_IN_WORD = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")

_CJK_1 = r"\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
_RUNS_1 = re.compile(rf"(?P<unspaced>[{_CJK_1}]+)|(?:(?![{_CJK_1}])[^\W_])+")


def terms(text: str, version: int = TOKENISER) -> list[str]:
    """The terms of a text or a query, in its order.

    The text is read as `searchable`. Words lose their case; English stop and question words go; the Snowball stemmer
    reduces the rest. Words joined by capitals (`WolfgangSchulz`), and words that a hyphen cuts at the end of a line,
    give the whole and the parts. A run of Chinese, Japanese, Korean, Thai, Lao, Burmese or Khmer gives its overlapping
    pairs of characters, each with its marks. A stop word in capitals beside words in small letters is a name, such as
    that of the WHO, and stays.

    Args:
        text: what to cut.
        version: `TOKENISER`, or 1, which made the postings of older indexes. Version 1 reads the text as it stands: a
            mark, a zero-width character or the end of a line ends a word.
    """
    if version == 1:
        return _terms_1(text)
    text = searchable(text)
    if not text.isascii():
        text = _HEBREW_ABBREVIATION.sub("", text)
    found: list[str] = []
    runs = list(_RUNS.finditer(text))
    for at, run in enumerate(runs):
        if run["unspaced"]:
            found.extend(_pairs(_CHARACTERS.findall(run.group())))
            continue
        for word in _whole_and_parts(run.group(), bool(run["cut"])):
            folded = word.casefold()
            if folded not in STOP_WORDS or (_is_acronym(word) and not _beside_capitals(runs, at)):
                found.append(_stem(folded))
    return found


def _terms_1(text: str) -> list[str]:
    found: list[str] = []
    for run in _RUNS_1.finditer(text):
        if run["unspaced"]:
            found.extend(_pairs(run.group()))
        else:
            words = map(str.lower, _whole_and_parts(run.group()))
            found.extend(_stem(word) for word in words if word not in STOP_WORDS)
    return found


def _whole_and_parts(word: str, cut: bool = False) -> list[str]:
    if cut:
        parts = _LINE_END_HYPHEN.split(word)
        return ["".join(parts), *parts]
    parts = _CAPITAL_IN_WORD.split(word)
    return [word, *parts] if len(parts) > 1 else parts


def _pairs(characters: Sequence[str]) -> list[str]:
    if len(characters) == 1:
        return [characters[0]]
    return [first + second for first, second in pairwise(characters)]


def _is_acronym(word: str) -> bool:
    return len(word) > 1 and word.isupper()


def _beside_capitals(runs: Sequence[regex.Match[str]], at: int) -> bool:
    """Whether a neighbour is in capitals too, so that a word's capitals say nothing."""
    return any(_is_acronym(run.group()) for run in (*runs[max(at - 1, 0) : at], *runs[at + 1 : at + 2]))


@lru_cache(maxsize=200_000)
def _stem(word: str) -> str:
    return str(_stemmer().stemWord(word))


@lru_cache(maxsize=1)
def _stemmer() -> "Stemmer.Stemmer":
    return Stemmer.Stemmer("english")
