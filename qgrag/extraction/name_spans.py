"""Names in a parsed text: spaCy's entities, extended to the whole names that they are part of."""

import calendar
from dataclasses import dataclass

from spacy.tokens import Doc, Token

from qgrag.names.vocabulary import PARTICLES, VALUE_TYPES

_CALENDAR = frozenset(name.lower() for name in (*calendar.month_name, *calendar.day_name) if name)
_MAX_TOKENS = 12


@dataclass(frozen=True, slots=True)
class NameSpan:
    """Tokens `first` to `last - 1` of a document: one name."""

    first: int
    last: int
    type: str

    def text(self, doc: Doc) -> str:
        return doc[self.first : self.last].text


def name_spans(doc: Doc) -> list[NameSpan]:
    """Names in text order, without overlaps.

    A span is a tagger's entity that is no value, or a run of capitalised proper nouns. It extends over a particle to
    the next capitalised word of the same sentence ('Edward the Confessor', 'Hugh of Tours'), where taggers often stop
    early. Its type is that of the longest entity in it, `OTHER` where there is none. O(tokens).
    """
    spans = []
    token = 0
    while token < len(doc):
        last = _name_end(doc, token)
        if last > token:
            span = NameSpan(token, last, _type(doc, token, last))
            if span.type != "OTHER" or not _is_calendar(doc, span):
                spans.append(span)
            token = last
        else:
            token += 1
    return spans


def value_at(doc: Doc, token: int) -> str:
    """The whole date, number or amount that a token is part of; empty where it is none."""
    if doc[token].ent_type_ not in VALUE_TYPES:
        return ""
    first = token
    while doc[first].ent_iob_ == "I":
        first -= 1
    last = token + 1
    while last < len(doc) and doc[last].ent_iob_ == "I":
        last += 1
    return doc[first:last].text


def _name_end(doc: Doc, first: int) -> int:
    """One past the name that starts at `first`; `first` itself where none does."""
    if not _opens(doc[first]):
        return first
    last = first
    while last < len(doc) and last - first < _MAX_TOKENS:
        if last > first and doc[last].is_sent_start:
            break
        if _belongs(doc[last], first):
            last += 1
        elif (onward := _over_particles(doc, last)) and last > first:
            last = onward
        else:
            break
    while last > first and (doc[last - 1].is_punct or doc[last - 1].tag_ == "POS"):
        last -= 1
    return last


def _opens(token: Token) -> bool:
    if token.ent_iob_ == "B" and token.ent_type_ not in VALUE_TYPES:
        return token.lower_ not in ("the", "a", "an") and not token.is_punct
    return _is_name_word(token)


def _belongs(token: Token, first: int) -> bool:
    inside = token.ent_iob_ == "I" and token.ent_type_ not in VALUE_TYPES and not token.is_punct
    return token.i == first or inside or _is_name_word(token) or _joins(token)


def _is_name_word(token: Token) -> bool:
    named = token.ent_type_ and token.ent_type_ not in VALUE_TYPES
    return (token.pos_ == "PROPN" or bool(named)) and not token.text[0].islower() and token.text[0].isalnum()


def _joins(token: Token) -> bool:
    """A hyphen or an ordinal ('Elizabeth II', 'Saxe - Eisenach') between two words of a name."""
    if token.text not in ("-", "–", "'", "’") or token.i + 1 >= len(token.doc):
        return False
    return bool(not token.doc[token.i - 1].whitespace_ and _is_name_word(token.doc[token.i + 1]))


def _over_particles(doc: Doc, token: int) -> int:
    """Where a name goes on after one or two particles; 0 where it does not."""
    for ahead in (1, 2):
        after = token + ahead
        between = doc[token:after]
        if after >= len(doc) or any(t.lower_ not in PARTICLES or t.is_sent_start for t in between):
            return 0
        if _is_name_word(doc[after]) and not doc[after].is_sent_start:
            return after
    return 0


def _is_calendar(doc: Doc, span: NameSpan) -> bool:
    """Whether a date that the tagger missed is all there is."""
    return all(word.lower_ in _CALENDAR for word in doc[span.first : span.last])


def _type(doc: Doc, first: int, last: int) -> str:
    lengths: dict[str, int] = {}
    for token in doc[first:last]:
        if token.ent_type_ and token.ent_type_ not in VALUE_TYPES:
            lengths[token.ent_type_] = lengths.get(token.ent_type_, 0) + 1
    return max(lengths, key=lambda kind: (lengths[kind], kind)) if lengths else "OTHER"
