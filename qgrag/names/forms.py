"""The normal forms of a name, each named for what it drops.

Each form drops what the one before it drops, and more:

| form | drops | serves |
| --- | --- | --- |
| `cleaning.clean_name` | Markdown, outer quotes, stray punctuation | display |
| `without_case` | case, and the width and ligatures of characters | comparison |
| `without_punctuation` | punctuation, a leading 'the', a trailing possessive | equal names |
| `without_spaces` | the spaces that are left | identity of an entity |

`name_tokens` cuts a text into the words that `NameMatcher` compares; `words_only` is that form of a whole name.
"""

import re
import unicodedata
from dataclasses import dataclass
from functools import lru_cache

import regex

from qgrag.corpus.scripts import HAN, KANA, UNSPACED
from qgrag.corpus.searchable import INVISIBLE, searchable
from qgrag.names.cleaning import clean_name
from qgrag.names.vocabulary import is_acronym

APOSTROPHES = "'’ʼ‘`"
_KEPT_SIGNS = frozenset("#&%@+")
_PERIOD_IN_A_NUMBER = "\ue000"

_DISAMBIGUATED = re.compile(r"^(.*\S)\s*\(([^()]+)\)$", re.S)
_POSSESSIVE_AT_END = re.compile(rf"(?<=\w)[{APOSTROPHES}]s?$")
_POSSESSIVE_S = re.compile(rf"[{APOSTROPHES}]s$", re.I)
_ARTICLE = re.compile(r"^the\s+", re.I)
_INITIALS = re.compile(r"(?<=\b\w\.)\s+(?=\w\.)")
_PERIOD_IN_NUMBER = re.compile(r"(?<=\d)\.(?=\d)")
_PERIOD_OF_INITIAL = re.compile(r"(?<=\b\w)\.")
_UNSPACED_SEPARATOR = re.compile(f"(?<=[{HAN}{KANA}])[ ·•・‧]+(?=[{HAN}{KANA}])")
_SPACE = re.compile(r"(?<!\d) | (?!\d)")
_LINE_END_HYPHEN = r"[-\u2010\u00ad][ \t]*\r?\n[ \t]*"
_SYLLABLE = r"[\u1100-\u115f][\u1160-\u11ff]*|[\uff66-\uff9d][\uff9e\uff9f]?"  # Hangul in parts, half-width katakana
_LETTER = rf"[[\p{{L}}\p{{N}}_&#+%]--[{UNSPACED}\u1100-\u11ff\uff66-\uff9f]]"
_WORD = rf"{_LETTER}(?:[{INVISIBLE}]*(?:{_LETTER}|\p{{M}}))*"
_TOKEN = regex.compile(
    r"(?P<initials>(?<![\p{L}\p{N}_])(?:\p{L}\.[ ]?){2,}|(?<![\p{L}\p{N}_])\p{L}\.(?=\s?\p{L}))"
    rf"|[{UNSPACED}]\p{{M}}*|{_SYLLABLE}"
    rf"|{_WORD}(?:[{APOSTROPHES}]{_WORD}|{_LINE_END_HYPHEN}(?=\p{{Ll}}){_WORD})*",
    regex.V1,
)
_DROPPED_IN_WORD = re.compile(f"{_LINE_END_HYPHEN}|[{APOSTROPHES}]")


def without_case(text: str) -> str:
    """`searchable` and case folding. The form of a form is itself."""
    if text.isascii():
        return text.lower()
    return searchable(searchable(text).casefold())


def without_punctuation(name: str) -> str:
    """The normal form of a name: two names with equal forms are one.

    Of the clean name in `without_case`, a leading 'the' and a trailing possessive go. Dashes, punctuation, emoji
    and other pictures become spaces, except the period in a number and the signs # & % @ +. Initials close up
    ('J. K.' and 'J.K.' are 'jk'), and so do Han characters and kana that spaces or dots set apart. A bracket at the
    end stays in brackets. Empty where `clean_name` is empty. The form of a form is itself. The
    acronyms that `is_acronym` keep their capitals.
    """
    form = name
    while (next_form := _without_punctuation_once(form)) != form:
        form = next_form
    return form


@lru_cache(maxsize=2**18)
def without_spaces(name: str) -> str:
    """The identity of an entity's name: `without_punctuation` without spaces, except between digits.

    'LiHua' is 'Li Hua', but '19 84' is not '1984'. Empty where no letter or number is left.
    """
    return _SPACE.sub("", without_punctuation(name))


def words_only(name: str) -> tuple[str, ...]:
    """The forms of a name's `name_tokens`; empty where the name has no letter or number."""
    return tuple(token.form for token in name_tokens(name))


@dataclass(frozen=True, slots=True)
class NameToken:
    """One token of a text: `text[start:end]` in its normal form.

    Args:
        form: `without_case`, and without apostrophes and line ends; the initials 'J. K.' are one token 'jk'.
        bare: `form` without a possessive; the same string where there is none.
        bare_end: one past the characters of `bare`; `end` where there is no possessive.
        cased: whether its first letter is a capital, or has no case at all.
        capitals: whether it has two letters or more, and all of them are capitals.
    """

    form: str
    bare: str
    start: int
    end: int
    bare_end: int
    cased: bool
    capitals: bool


def name_tokens(text: str) -> list[NameToken]:
    """Tokens for matching names: words without punctuation, and single characters of the scripts `UNSPACED`.

    Marks and characters that nobody sees belong to the word that they stand in, and so does a hyphen that cuts a word
    at the end of a line.
    """
    tokens = []
    for found in _TOKEN.finditer(text):
        raw = found.group().rstrip()
        if found["initials"]:
            form = bare = without_case(re.sub(r"[.\s]", "", raw))
        else:
            form, bare = _without_apostrophes(raw), _without_apostrophes(_POSSESSIVE_S.sub("", raw))
        start, end = found.start(), found.start() + len(raw)
        possessive = _POSSESSIVE_S.search(raw) if bare != form else None
        bare_end = start + possessive.start() if possessive else end
        capitals = len(bare) > 1 and text[start:bare_end].isupper()
        tokens.append(NameToken(form, bare, start, end, bare_end, not raw[0].islower(), capitals))
    return tokens


def _without_apostrophes(word: str) -> str:
    return without_case(_DROPPED_IN_WORD.sub("", word))


def _without_punctuation_once(name: str) -> str:
    cleaned = clean_name(name)
    bare = _ARTICLE.sub("", _POSSESSIVE_AT_END.sub("", cleaned))
    if is_acronym(bare):
        return bare
    form = without_case(cleaned)
    disambiguated = _DISAMBIGUATED.match(form)
    if disambiguated:
        main, bracket = _plain(disambiguated.group(1)), _plain(disambiguated.group(2))
        return f"{main} ({bracket})" if main and bracket else main or bracket
    return _plain(form)


def _plain(text: str) -> str:
    text = _POSSESSIVE_AT_END.sub("", text.strip())
    text = _PERIOD_OF_INITIAL.sub("", _INITIALS.sub("", _PERIOD_IN_NUMBER.sub(_PERIOD_IN_A_NUMBER, text)))
    text = "".join(_plain_character(c) for c in text)
    text = _UNSPACED_SEPARATOR.sub("", " ".join(text.split()))
    while text.startswith("the ") and len(text) > 4:
        text = text[4:]
    return text.replace(_PERIOD_IN_A_NUMBER, ".")


def _plain_character(character: str) -> str:
    category = unicodedata.category(character)
    if character == _PERIOD_IN_A_NUMBER or character in _KEPT_SIGNS or category[0] in "LNM" or category == "Sc":
        return character
    return "" if character in APOSTROPHES else " "
