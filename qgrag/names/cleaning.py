"""Names as they should be shown.

`clean_name` is for any text: a title, a tagger's span, a model's field. `clean_model_name` also drops what only
language models write: list numbering, field labels, delimiters, corrections of themselves. Both go by Unicode
category, so that names of every script survive.
"""

import html
import re
import unicodedata
from functools import lru_cache

from qgrag.corpus.scripts import UNSPACED
from qgrag.corpus.searchable import searchable, searchable_spans
from qgrag.names.vocabulary import is_acronym

MAX_NAME_CHARS = 200
"""Longer 'names' are sentences or endless repetition: they clean to the empty string."""

_QUOTES = "\"'`´‘’‚‛“”„‟‹›«»「」『』《》〈〉＂＇"
_EDGES = ",;:、，；：。!！?？|=~^_*#•·・-–—"
_KEPT_ABBREVIATIONS = frozenset(("inc", "ltd", "co", "corp", "jr", "sr", "st", "bros", "dr", "mr", "mrs", "no"))

_LINK = re.compile(r"!?\[([^\[\]]+)\]\([^()\s]*\)")
_EMPHASIS = re.compile(r"(\*\*|__|``?|~~)(?=\S)(.+?)(?<=\S)\1")
_ENUMERATION = re.compile(r"^\s*(?:\(?\d{1,3}[)）]|[-*+•▪◦]|#{1,6})\s+")
_NUMBERED = re.compile(r"^\s*(?:\d{1,3}\s*[.、．:：]\s*(?=\D)|[\[【]\d{1,3}[\]】]\s*(?=\S)|[a-z][)）]\s+)", re.I)
_TAG = re.compile(r"</?[a-z][\w-]*/?>", re.I)
_ESCAPED_BREAK = re.compile(r"^(?:\\[nrt])+|(?:\\[nrt])+$")
_QUOTE = f"[{re.escape(_QUOTES)}]"
_QUOTED_THEN_BRACKET = re.compile(rf"^{_QUOTE}*(.+?){_QUOTE}+(?=\s*[(（][^()（）]+[)）]$)")
_LABEL = re.compile(
    r"^\s*(?:entity|name|entity[ _]name|head|tail|subject|object|source|target|实体|名称|姓名)[\"'`]?\s*[:：=]\s*",
    re.I,
)
_DELIMITER = re.compile(r"<\s*\|?\s*(?:sep|tuple[_ ]?delimiter|[|#]+)?\s*\|?\s*>|\|\|?|#{2,}|\t", re.I)
_CORRECTION = re.compile(
    r"(?:[(\[（【,;，；–—]|\s-\s|\.{3}|…|--?>|→|=>|\.(?=\s+(?:self[- ]?)?correct(?:ion|ed)\s*[:：]))\s*"
    r"(?:(?:no|wait|sorry|oops)\s*,\s*)*"
    r"(?:(?:self[- ]?)?correct(?:ion|ed)\b(?: to)?(?!\s+from\b)\s*[:：]?|actually\b\s*[:：,]?|rather\s*[:：]|"
    r"(?:it )?should be|i meant?\b|"
    r"(?:自我)?(?:更正|纠正|修正)为?\s*[:：]?|应为\s*[:：]?|应该是\s*[:：]?)"
    r"\s*([^()\[\]（）【】]+)",
    re.I,
)
_CORRECTED_FROM = re.compile(r"[(\[,;]\s*(?:self[- ]?)?corrected from\b.*", re.I | re.S)
_TUPLE_KINDS = frozenset(("entity", "relationship", "relation"))
_ARROW = re.compile(r"\s(?:-{1,2}>|→|=>)\s*")
_REPEATED = re.compile(r"(?:^|\s)(\S+(?:\s+\S+){0,3})(?:\s+\1){3,}(?=\s|$)|(\w{1,8}?)\2{9,}")


@lru_cache(maxsize=2**18)
def clean_name(raw: str) -> str:
    """The name as it should be shown: one line without markdown, outer quotes, bullets or stray punctuation.

    A bracket such as '(film)' stays, since it tells two bearers of a name apart; so do a possessive, inner
    apostrophes and case, which only the forms of `names.forms` drop. Returns the empty string where no letter or number
    is left, or more than `MAX_NAME_CHARS` characters are. Cleaning a clean name changes nothing.
    """
    name = raw
    while (cleaner := _clean_once(name)) != name:
        name = cleaner
    if len(name) > MAX_NAME_CHARS or not any(unicodedata.category(c)[0] in "LN" for c in name):
        return ""
    return name


def clean_model_name(raw: str, source: str = "") -> str:
    """`clean_name` for a language model's field.

    Where the source text contains the name, whatever its case, the result is the source's own wording: '1. FC Köln'
    keeps its number and 'PARIS' becomes 'Paris'. Elsewhere labels, list numbers, delimiters and HTML go, and a
    correction takes the place of what it corrects ('Lyon (correction: Paris)' is 'Paris'). A name that repeats
    itself endlessly gives the empty string.
    """
    name = clean_name(raw)
    if found := _in_source(name, source):
        return found
    corrected = _CORRECTION.search(raw)
    name = corrected.group(1) if corrected else _CORRECTED_FROM.sub("", raw)
    name = _ARROW.split(html.unescape(name))[-1]
    parts = [part for part in map(clean_name, _DELIMITER.split(_TAG.sub(" ", name))) if part]
    name = next((part for part in parts if part.casefold() not in _TUPLE_KINDS), parts[0] if parts else "")
    name = clean_name(_NUMBERED.sub("", _LABEL.sub("", clean_name(_ESCAPED_BREAK.sub("", name)))))
    if _REPEATED.search(name):
        return ""
    return _in_source(name, source) or name


def find_name(name: str, text: str) -> tuple[int, int] | None:
    """The span [start, end) where a text first has the name as whole words, whatever its case and white space.

    An `is_acronym` is found in capitals only. Where no words are equal as they stand, those that are equal as
    `searchable` count. None where the text has none.
    """
    if not name or not text:
        return None
    if span := _find_words(name, text):
        return span
    plain = searchable(name)
    if not plain or (plain == name and searchable(text) == text):
        return None
    found, spans = searchable_spans(text)
    place = _find_words(plain, found)
    return (spans[place[0]][0], spans[place[1] - 1][1]) if place else None


def _find_words(name: str, text: str) -> tuple[int, int] | None:
    pattern = r"\s+".join(re.escape(word) for word in name.split())
    left = r"(?<![^\W_])" if _spaced(name[0]) else ""
    right = r"(?![^\W_]|[\u0300-\u036f])" if _spaced(name[-1]) else ""
    found = re.search(left + pattern + right, text, 0 if is_acronym(name) else re.I)
    return found.span() if found else None


def _clean_once(name: str) -> str:
    name = unicodedata.normalize("NFC", "".join(_visible(c) for c in name))
    name = " ".join(name.split())
    name = _LINK.sub(r"\1", name)
    name = _EMPHASIS.sub(r"\2", name)
    name = _ENUMERATION.sub("", name)
    name = _QUOTED_THEN_BRACKET.sub(r"\1", name)
    name = name.strip(_QUOTES + _EDGES + " ") if not _signed(name) else name.strip(_QUOTES + " ")
    name = _without_unmatched_brackets(name)
    if name.endswith(".") and not _ends_in_abbreviation(name):
        name = name[:-1]
    return name.strip()


def _visible(character: str) -> str:
    category = unicodedata.category(character)
    if category in ("Cc", "Zl", "Zp"):
        return " "
    joins_letters = character in "\u200c\u200d"
    return "" if category in ("Cf", "Cs", "Co", "Cn") and not joins_letters else character


def _signed(name: str) -> bool:
    """Whether the last character is a sign that belongs to the name, as in 'C#' or 'Jeopardy!'."""
    return len(name) > 1 and name[-1] in "#!！?？" and name[-2].isalnum() and name[0].isalnum()


def _without_unmatched_brackets(name: str) -> str:
    for opening, closing in ("()", "[]", "（）", "【】", "{}", "<>"):
        if len(name) > 1 and name[0] == opening and name.find(closing) in (-1, len(name) - 1):
            name = name[1:].removesuffix(closing)
        if name.endswith(closing) and name.count(closing) > name.count(opening):
            name = name[:-1]
        if name.endswith(opening):
            name = name[:-1]
    return name


def _ends_in_abbreviation(name: str) -> bool:
    last = name[:-1].split()[-1:] or [""]
    return "." in last[0] or len(last[0]) == 1 or last[0].casefold() in _KEPT_ABBREVIATIONS


def _in_source(name: str, source: str) -> str:
    span = find_name(name, source)
    return clean_name(source[span[0] : span[1]]) if span else ""


def _spaced(character: str) -> bool:
    """Whether the character's script sets words apart, so that a match must end at a word's edge."""
    return character.isalnum() and not re.match(f"[{UNSPACED}]", character)
