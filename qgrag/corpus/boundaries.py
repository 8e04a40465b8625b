"""How well a text can be cut between two characters."""

import re
import unicodedata
from enum import IntEnum

from qgrag.corpus.scripts import HAN

SENTENCE_ENDS_SPACED = frozenset(".!?…‽؟۔।॥")
"""Marks that end a sentence where white space follows."""

SENTENCE_ENDS = frozenset("。！？｡")
"""Marks that end a sentence whatever follows."""

CLOSERS = frozenset("\"'”’»)]}」』）】》〉")
"""Marks that belong to the sentence whose end they follow."""

_IDEOGRAPH = re.compile(f"[{HAN}]")

REACH = 32
"""How many characters of white space or closing marks are looked at beyond a token, which bounds the work."""


class Boundary(IntEnum):
    """Kinds of cuts, the worst first."""

    NONE = 0
    """inside a character"""
    CHARACTER = 1
    """between characters that belong together, such as a letter and its accent"""
    LETTER = 2
    """inside a word"""
    WORD = 3
    SENTENCE = 4
    LINE = 5
    PARAGRAPH = 6


def boundary_between(text: str, left: int, right: int) -> Boundary:
    """The boundary between a token that ends at `left` and the next one, which starts at `right`."""
    if right < left:
        return Boundary.NONE
    nearest, farthest = max(0, left - REACH), min(len(text), right + REACH)
    while left > nearest and text[left - 1].isspace():
        left -= 1
    while right < farthest and text[right].isspace():
        right += 1
    gap = text[left:right]
    breaks = gap.count("\n")
    if breaks:
        return Boundary.PARAGRAPH if breaks > 1 else Boundary.LINE
    spaced = any(_is_separator(character) for character in gap)
    if _ends_sentence(text, left, spaced):
        return Boundary.SENTENCE
    if spaced or left == 0 or right == len(text):
        return Boundary.WORD
    return _unspaced(text[left - 1], text[right])


def trim(text: str, start: int, end: int) -> tuple[int, int]:
    """The span without white space at its ends; an empty span if it holds nothing else."""
    while start < end and text[start].isspace():
        start += 1
    while end > start and text[end - 1].isspace():
        end -= 1
    return start, end


def _is_separator(character: str) -> bool:
    """Whether a character sets words apart; tokenizers drop other control characters and join their neighbours."""
    return character in "\t\r" or unicodedata.category(character)[0] == "Z" or character == " "


def _ends_sentence(text: str, end: int, spaced: bool) -> bool:
    nearest = max(0, end - REACH)
    while end > nearest and text[end - 1] in CLOSERS:
        end -= 1
    return bool(end) and (text[end - 1] in SENTENCE_ENDS or (spaced and text[end - 1] in SENTENCE_ENDS_SPACED))


def _unspaced(left: str, right: str) -> Boundary:
    if _IDEOGRAPH.match(left) or _IDEOGRAPH.match(right):
        return Boundary.WORD
    kinds = unicodedata.category(left)[0], unicodedata.category(right)[0]
    if kinds[1] == "M" or "C" in kinds or unicodedata.category(right) == "Sk":
        return Boundary.CHARACTER
    return Boundary.WORD if "P" in kinds else Boundary.LETTER
