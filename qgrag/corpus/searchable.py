"""Text as search and matching read it, and whether a reader sees anything in it."""

import unicodedata
from functools import lru_cache

import regex

INVISIBLE = r"\p{Cf}\p{Variation_Selector}\u034f"
"""Characters that nobody sees, for the inside of a `regex` pattern's `[...]`."""

_INVISIBLE = regex.compile(f"[{INVISIBLE}]+")
_OPTIONAL_MARKS = regex.compile(
    r"[\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u0640\u064b-\u065f\u0670]+"
)
_CHARACTER = regex.compile(r"\X")
_SOFT_HYPHEN_AT_LINE_END = regex.compile(r"\u00ad(?=[ \t]*\r?\n)")
_BLANK = regex.compile(rf"[\s\p{{Cc}}\p{{Z}}{INVISIBLE}\u115f\u1160\u2800\u3164\uffa0]*")


def searchable(text: str) -> str:
    """The text in the form in which equal words have equal characters; not for display, as spans do not carry over.

    Characters that nobody sees go: zero-width ones, direction marks, variation selectors, soft hyphens (one at the end
    of a line becomes a hyphen). What is left is in NFKC, so that accents are composed, and ligatures and full-width
    characters are plain. Marks stay, since vowel signs and accents make other words, except the points of Hebrew and
    the short vowels and tatweel of Arabic, which most texts leave out.
    """
    if text.isascii():
        return text
    visible = _INVISIBLE.sub("", _SOFT_HYPHEN_AT_LINE_END.sub("-", text))
    return _OPTIONAL_MARKS.sub("", unicodedata.normalize("NFKC", visible))


@lru_cache(maxsize=64)
def searchable_spans(text: str) -> tuple[str, list[tuple[int, int]]]:
    """`searchable`, character by character as a reader counts them, with the place of each result in the text.

    Returns:
        The searchable text, and for each of its characters the span [start, end) of `text` that it stands for.
    """
    parts: list[str] = []
    spans: list[tuple[int, int]] = []
    for character in _CHARACTER.finditer(text):
        part = searchable(character.group())
        parts.append(part)
        spans += [character.span()] * len(part)
    return "".join(parts), spans


def is_blank(text: str) -> bool:
    """Whether a reader sees nothing: white space, control characters, zero-width characters and fillers alone."""
    return _BLANK.fullmatch(text) is not None
