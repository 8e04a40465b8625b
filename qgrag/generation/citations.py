"""Citations in an answer: which passages it names, and which of these were never shown."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

_WORD = r"(?:(?:passages?|sources?|documents?|docs?|段落|文章|来源|\^)\s*)?"
_ITEM = rf"{_WORD}(?:\d{{1,3}}\s*[-–—~]\s*\d{{1,3}}|\d{{1,4}})"
_ONE = rf"[\[［【]\s*{_ITEM}(?:\s*(?:[,;、，]|and\b|&|和)\s*{_ITEM})*\s*[\]］】]"
_MARKERS = re.compile(rf"[ \t]*{_ONE}(?:[ \t]*{_ONE})*", re.I)
_NUMBERS = re.compile(r"(\d+)(?:\s*[-–—~]\s*(\d+))?")
_SPACE_BEFORE_STOP = re.compile(r"[ \t]+(?=[.,;:!?。，；：！？](?:\s|$))")


@dataclass(frozen=True, slots=True)
class Cited:
    """An answer with its citations checked.

    Args:
        text: the answer with markers of passages that were shown, each as `[n]`.
        bare: the answer without markers.
        numbers: the passages cited, from 1, in order of first mention.
        invented: numbers in the answer that name no passage; they are gone from `text`.
    """

    text: str
    bare: str
    numbers: tuple[int, ...]
    invented: int


def check_citations(text: str, count: int) -> Cited:
    """Read markers such as `[2]`, `[1, 3]`, `[1-3]`, `[Passage 2]` or `【2】` of an answer that was given `count`
    passages."""
    numbers: dict[int, None] = {}
    invented = 0

    def rewrite(match: re.Match[str]) -> str:
        nonlocal invented
        valid = []
        for number in _numbers(match.group()):
            if 1 <= number <= count:
                valid.append(number)
                numbers[number] = None
            else:
                invented += 1
        starts_line = match.start() == 0 or text[match.start() - 1] == "\n"
        return ("" if starts_line else " ") + "".join(f"[{n}]" for n in valid) if valid else ""

    checked = _SPACE_BEFORE_STOP.sub("", _MARKERS.sub(rewrite, text)).strip()
    bare = _SPACE_BEFORE_STOP.sub("", _MARKERS.sub("", text)).strip()
    return Cited(checked, bare, tuple(numbers), invented)


def _numbers(marker: str) -> Iterator[int]:
    """The numbers that a marker names, those within a range included."""
    for first, last in _NUMBERS.findall(marker):
        yield from range(int(first), max(int(first), int(last or first)) + 1)
