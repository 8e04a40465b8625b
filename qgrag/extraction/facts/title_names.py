"""The names by which a titled text speaks of its title."""

from collections.abc import Sequence

from spacy.tokens import Doc

from qgrag.extraction.name_spans import NameSpan
from qgrag.names.forms import name_tokens, words_only
from qgrag.names.matching import NameMatcher
from qgrag.names.titles import base_name, head_name
from qgrag.names.vocabulary import PARTICLES

_SHORT_FORM_TYPES = frozenset(("PERSON", "OTHER", "ORG"))
_LEAD_TOKENS = 6


def with_title(doc: Doc, names: Sequence[NameSpan], title: str) -> list[NameSpan]:
    """The names of a text, and its title wherever the text repeats it: taggers miss titles like 'Agni'."""
    forms = {words_only(form): form for form in (base_name(title), head_name(title)) if form}
    found = []
    for match in NameMatcher(forms).longest(name_tokens(doc.text)) if forms else ():
        piece = doc.char_span(match.start, match.end, alignment_mode="expand")
        if piece and (doc.text[match.start].isupper() or not match.value[0].isupper()):
            inside = [s for s in names if s.first < piece.end and piece.start < s.last]
            kind = max(inside, key=lambda s: s.last - s.first).type if inside else "OTHER"
            if not any(s.first <= piece.start and piece.end <= s.last for s in inside):
                found.append(NameSpan(piece.start, piece.end, kind))
    rest = [s for s in names if not any(s.first < f.last and f.first < s.last for f in found)]
    return sorted([*rest, *found], key=lambda span: span.first)


class Topic:
    """Decides which names in a text mean its title.

    They are: the title without bracket or comma suffix; a name at the very start of the text that shares a
    word with it ('Abu Ja'far Ashinas' under the title 'Ashinas'); and, where that first name is no place, its
    first or last word on its own, or its part before a particle ('Ermengarde' under 'Ermengarde of Tours').

    Args:
        title: title of the text; empty for none, and then nothing means it.
        doc: the parsed text.
        names: its names.
    """

    def __init__(self, title: str, doc: Doc, names: Sequence[NameSpan]) -> None:
        self._doc = doc
        self._forms = {words_only(form) for form in (title, base_name(title), head_name(title)) if form}
        words = set(words_only(base_name(title)))
        lead = names[0] if names and names[0].first < _LEAD_TOKENS else None
        if lead and words & set(self._key(lead)) - PARTICLES:
            self._forms.add(self._key(lead))
            if lead.type in _SHORT_FORM_TYPES:
                self._forms |= _short_forms(words_only(head_name(title)))
                self._forms |= _short_forms(self._key(lead))
        self._forms -= {()}

    def __call__(self, span: NameSpan) -> bool:
        return self._key(span) in self._forms

    def _key(self, span: NameSpan) -> tuple[str, ...]:
        return words_only(span.text(self._doc))


def _short_forms(name: tuple[str, ...]) -> set[tuple[str, ...]]:
    if not name:
        return set()
    particle = next((i for i, word in enumerate(name) if i and word in PARTICLES), 0)
    return {(name[0],), name[:particle] if particle else (name[-1],)}
