"""Names that punctuation and script mark in Chinese, Japanese and Korean text, without a pipeline."""

import re

from qgrag.extraction.records import Mention

_RULES = (
    (re.compile(r"[《〈『「]([^《》〈〉『』「」\n]{1,40})[》〉』」]"), 1, "WORK_OF_ART"),
    (re.compile(r"[\u30a1-\u30fa\u30fc]{3,}(?:[・＝=][\u30a1-\u30fa\u30fc]+)*"), 0, "OTHER"),
    (re.compile(r"(?<![A-Za-z])[A-Z][A-Za-z0-9'’.-]*(?:[ ·][A-Z0-9][A-Za-z0-9'’.-]*)*"), 0, "OTHER"),
)


def cjk_names(text: str, title: str) -> list[Mention]:
    """Names in text order, without overlaps.

    They are the words of the title, what title marks enclose, runs of katakana, and names in Latin letters. Nothing in
    the script tells where a name in Han characters ends, so such a name is found only where it is the title.
    """
    taken: set[int] = set()
    found = []
    rules = ((re.compile(re.escape(title)), 0, "OTHER"), *_RULES) if title else _RULES
    for pattern, group, kind in rules:
        for match in pattern.finditer(text):
            start, end = match.span(group)
            if taken.isdisjoint(range(start, end)):
                taken.update(range(start, end))
                found.append(Mention(text[start:end], kind, start, end))
    return sorted(found, key=lambda mention: mention.start)
