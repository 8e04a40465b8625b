"""Names as token sequences, and every place where one of many names stands in a text."""

import re
import unicodedata
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

_HAN_KANA = "\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_TOKEN = re.compile(
    rf"(?P<initials>(?<!\w)(?:[^\W\d_]\.[ ]?){{2,}}|(?<!\w)[^\W\d_]\.(?=\s?[^\W\d_]))"
    rf"|[{_HAN_KANA}]|(?:(?![{_HAN_KANA}])[\w&#+%])+(?:['’ʼ`](?:(?![{_HAN_KANA}])\w)+)*"
)
_APOSTROPHE = re.compile("['’ʼ`]")
_POSSESSIVE = re.compile("['’ʼ`]s$", re.I)

K = TypeVar("K", bound=Hashable)


@dataclass(frozen=True, slots=True)
class NameToken:
    """One token of a text: `text[start:end]` in its normal form.

    Args:
        form: NFKC, case folded, without apostrophes; the initials 'J. K.' are one token 'jk'.
        bare: `form` without a possessive; the same string where there is none.
        bare_end: one past `bare`; `end` where there is no possessive.
        cased: whether its first letter is a capital, or has no case at all.
    """

    form: str
    bare: str
    start: int
    end: int
    bare_end: int
    cased: bool


def name_tokens(text: str) -> list[NameToken]:
    """Tokens for matching names: words without punctuation, and Han characters and kana one by one."""
    tokens = []
    for found in _TOKEN.finditer(text):
        raw = found.group().rstrip()
        if found["initials"]:
            form = bare = _fold(re.sub(r"[.\s]", "", raw))
        else:
            form, bare = _fold(_APOSTROPHE.sub("", raw)), _fold(_APOSTROPHE.sub("", _POSSESSIVE.sub("", raw)))
        start, end = found.start(), found.start() + len(raw)
        possessive = _POSSESSIVE.search(raw) if bare != form else None
        bare_end = start + possessive.start() if possessive else end
        tokens.append(NameToken(form, bare, start, end, bare_end, not raw[0].islower()))
    return tokens


def token_key(text: str) -> tuple[str, ...]:
    """The normal form under which `NameMatcher` files a name; empty where a name has no letter or number."""
    return tuple(token.form for token in name_tokens(text))


@dataclass(frozen=True, slots=True)
class NameMatch(Generic[K]):
    """A name found in a text: tokens `first` to `last - 1`, characters `start` to `end - 1`."""

    value: K
    first: int
    last: int
    start: int
    end: int


class NameMatcher(Generic[K]):
    """Finds many names in a text at once.

    A table from token sequence to value, and for each first token the lengths that occur: a text of n tokens
        costs O(n L) look-ups, whatever the number of names, L being the number of lengths that begin with a
        token.

    Args:
        names: token sequence (`token_key`) -> value.
    """

    def __init__(self, names: Mapping[tuple[str, ...], K]) -> None:
        self._values = {key: value for key, value in names.items() if key}
        lengths: dict[str, set[int]] = {}
        for key in self._values:
            lengths.setdefault(key[0], set()).add(len(key))
        self._lengths = {first: sorted(found, reverse=True) for first, found in lengths.items()}

    def __len__(self) -> int:
        return len(self._values)

    def longest(self, tokens: Sequence[NameToken]) -> list[NameMatch[K]]:
        """The matches that `longest_first` keeps of all."""
        return longest_first(self.all(tokens))

    def all(self, tokens: Sequence[NameToken]) -> list[NameMatch[K]]:
        """Every match, overlapping ones too, by first token, longer ones first."""
        forms = [token.form for token in tokens]
        found = []
        for first, token in enumerate(tokens):
            starts = {token.form, token.bare}
            lengths = {length for start in starts for length in self._lengths.get(start, ())}
            for length in sorted(lengths, reverse=True):
                last = first + length
                if last > len(tokens):
                    continue
                if match := self._match(forms, tokens, first, last):
                    found.append(match)
        return found

    def _match(self, forms: list[str], tokens: Sequence[NameToken], first: int, last: int) -> NameMatch[K] | None:
        end = tokens[last - 1]
        words = tuple(forms[first:last])
        if words in self._values:
            return NameMatch(self._values[words], first, last, tokens[first].start, end.end)
        words = (*words[:-1], end.bare)
        if words in self._values:
            return NameMatch(self._values[words], first, last, tokens[first].start, end.bare_end)
        return None


def longest_first(matches: Iterable[NameMatch[K]]) -> list[NameMatch[K]]:
    """Matches without overlaps: of two that compete the longer, then the one further left; in text order."""
    taken: set[int] = set()
    chosen = []
    for match in sorted(matches, key=lambda m: (m.first - m.last, m.first)):
        span = range(match.first, match.last)
        if taken.isdisjoint(span):
            taken.update(span)
            chosen.append(match)
    return sorted(chosen, key=lambda m: m.first)


def _fold(text: str) -> str:
    if text.isascii():
        return text.lower()
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
