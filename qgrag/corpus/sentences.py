"""Sentences and lines as character spans, by rules that suit any language and need no model."""

import re

from qgrag.corpus.boundaries import CLOSERS, SENTENCE_ENDS, SENTENCE_ENDS_SPACED, trim

_closers = re.escape("".join(sorted(CLOSERS)))
_spaced = re.escape("".join(sorted(SENTENCE_ENDS_SPACED)))
_unspaced = re.escape("".join(sorted(SENTENCE_ENDS)))
# The lookbehind and the possessive repeats keep a long run of marks from being tried at each of its characters.
_END = re.compile(
    rf"(?P<mark>[{_unspaced}]++|(?<![{_spaced}])[{_spaced}]++(?=[{_closers}]*+\s))(?P<closers>[{_closers}]*+)"
)
_LINE = re.compile(r"[^\n\r\v\f\x85\u2028\u2029]+")
_OPENERS = "([{\"'“‘«"
# fmt: off
_BEFORE_NAMES = frozenset({
    "al", "approx", "ca", "capt", "cf", "col", "dr", "e.g", "gen", "gov", "hon", "i.e", "lt", "messrs", "mlle",
    "mme", "mr", "mrs", "ms", "prof", "rep", "rev", "sen", "sgt", "st", "vs",
})
_BEFORE_NUMBERS = frozenset({
    "apr", "aug", "dec", "feb", "fig", "jan", "jul", "jun", "mar", "no", "nos", "nov", "oct", "p", "pp", "sep",
    "sept", "vol",
})
# fmt: on


def split_sentences(text: str) -> list[tuple[int, int]]:
    """Cut a text into sentences: (start, end) spans in order, without white space at their ends.

    A line break always ends a sentence, so that a chat line `Name: text` never runs into the next; within a line,
    `。！？` do, and `.!?` before white space. A full stop does not count after an initial, a list number or a
    common English abbreviation, nor before a small letter. Together the spans hold every character that is not
    white space. Linear in the text's length.

    >>> text = "Ann: Hi Dr. Lee! 你好。再见。"
    >>> [text[start:end] for start, end in split_sentences(text)]
    ['Ann: Hi Dr. Lee!', '你好。', '再见。']
    """
    return [span for start, end in split_lines(text) for span in _split_line(text, start, end)]


def split_lines(text: str) -> list[tuple[int, int]]:
    """The lines of a text that are not blank: (start, end) spans without white space at their ends."""
    lines = (trim(text, *line.span()) for line in _LINE.finditer(text))
    return [(start, end) for start, end in lines if start < end]


def _split_line(text: str, start: int, end: int) -> list[tuple[int, int]]:
    spans = []
    for match in _END.finditer(text, start, end):
        if match.end() < end and _is_end(text, start, match):
            spans.append(trim(text, start, match.end()))
            start = match.end()
    spans.append(trim(text, start, end))
    return spans


def _is_end(text: str, start: int, match: re.Match[str]) -> bool:
    mark = match["mark"]
    if mark[-1] in SENTENCE_ENDS:
        return True
    following = text[match.end() : match.end() + 8].lstrip()[:1]
    if following.islower() and (mark[-1] in ".…" or match["closers"]):
        return False
    return mark != "." or not _is_abbreviation(text, start, match.start(), following)


def _is_abbreviation(text: str, start: int, stop: int, following: str) -> bool:
    """Whether the full stop at `stop`, in a sentence that starts at `start`, belongs to the word before it."""
    words = text[max(start, stop - 16) : stop].split()
    if not words or text[stop - 1].isspace():
        return False
    word = words[-1].lstrip(_OPENERS)
    if word.isdigit():
        return text[start:stop].strip() == word
    if all(len(part) == 1 for part in word.split(".")) and word[0].isupper():
        return True
    return word.lower() in _BEFORE_NAMES or (word.lower() in _BEFORE_NUMBERS and following.isdigit())
