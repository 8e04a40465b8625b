"""Document titles found in the text of other documents, and a chunk's facts with these names in place."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace

from qgrag.corpus.records import Chunk
from qgrag.extraction.records import ALSO_CALLED, Description, Facts, Mention, Triple
from qgrag.names.cleaning import clean_name
from qgrag.names.forms import NameToken, name_tokens, without_spaces
from qgrag.names.keys import NameKeys
from qgrag.names.matching import NameMatch, NameMatcher, longest_first
from qgrag.names.titles import base_name
from qgrag.names.vocabulary import VALUE_TYPES

MENTIONS = "mentions"
_MIN_CHARACTERS = 3


@dataclass(frozen=True, slots=True)
class ChunkFacts:
    """The facts of a chunk as the graph takes them in.

    Args:
        title: clean title of the chunk's document, empty for none.
        mentions: (spelling, type, times), values left out.
        triples: with the title's links to titles that no extractor saw.
        descriptions: as extracted.
        value_types: type of each value that the chunk holds.
        called: keys of the names under which the text speaks of its title.
        keys: of the names of the corpus.
    """

    title: str
    mentions: tuple[tuple[str, str, int], ...]
    triples: tuple[Triple, ...]
    descriptions: tuple[Description, ...]
    value_types: dict[str, str]
    called: frozenset[str]
    keys: NameKeys

    def key(self, surface: str) -> str:
        """The key of a name as this chunk means it: a name that it calls its title by is its title."""
        return self.keys(self.title if without_spaces(surface) in self.called else surface)


class TitleMentions:
    """Finds the titles of a corpus in a text, with their bracket or without it.

    Args:
        titles: titles of all chunks, empty ones among them.
    """

    def __init__(self, titles: Iterable[str]) -> None:
        forms: dict[tuple[str, ...], str] = {}
        self._capitals: dict[str, list[bool]] = {}
        for title in sorted(set(filter(None, map(clean_name, titles)))):
            for form in (title, base_name(title)):
                if len(form) >= _MIN_CHARACTERS:
                    tokens = name_tokens(form)
                    forms.setdefault(tuple(token.form for token in tokens), form)
                    self._capitals[form] = [token.cased for token in tokens]
        self._matcher = NameMatcher(forms)

    def __call__(self, text: str) -> list[NameMatch[str]]:
        """Longest matches in text order whose words begin with capitals wherever the title's do."""
        tokens = name_tokens(text)
        return longest_first(m for m in self._matcher.all(tokens) if self._has_capitals(tokens, m))

    def _has_capitals(self, tokens: list[NameToken], match: NameMatch[str]) -> bool:
        pairs = zip(tokens[match.first : match.last], self._capitals[match.value], strict=True)
        return all(token.cased or not wanted for token, wanted in pairs)


def chunk_facts(chunk: Chunk, facts: Facts, keys: NameKeys, titles: TitleMentions | None) -> ChunkFacts:
    """A chunk's facts with the titles that its text holds.

    A mention inside a longer title goes; where the chunk uses its spelling nowhere else, triples and descriptions
    that use it speak of the title from then on. A title of one word counts only where the extractor saw a name too:
    the Empire is not the film of that name.
    """
    title = clean_name(chunk.title)
    named = [m for m in facts.mentions if m.type not in VALUE_TYPES and m.start >= 0]
    in_title_only = [m for m in facts.mentions if m.type not in VALUE_TYPES and m.start < 0]
    words = {(mention.start, mention.end) for mention in named}
    matches = [
        match
        for match in (titles(chunk.text) if titles else ())
        if match.last - match.first > 1 or (match.start, match.end) in words
    ]
    covered = {mention: match for mention in named if (match := _cover(mention, matches))}
    left = [mention for mention in named if mention not in covered]
    kept_surfaces = {mention.surface for mention in left}
    renamed = {m.surface: match.value for m, match in covered.items() if m.surface not in kept_surfaces}
    spans = {(mention.start, mention.end) for mention in left}
    added = [Mention(m.value, _kind(m, named), m.start, m.end) for m in matches if (m.start, m.end) not in spans]
    counted = Counter((mention.surface, mention.type) for mention in [*left, *added, *in_title_only])
    called = {t.tail for t in facts.triples if t.relation == ALSO_CALLED and t.head == chunk.title}
    triples = [
        replace(t, head=renamed.get(t.head, t.head), tail=renamed.get(t.tail, t.tail))
        for t in facts.triples
        if t.relation != ALSO_CALLED
    ]
    row = ChunkFacts(
        title,
        tuple((surface, kind, times) for (surface, kind), times in counted.items()),
        tuple(triples),
        tuple(replace(d, entity=renamed.get(d.entity, d.entity)) for d in facts.descriptions),
        {m.surface: m.type for m in facts.mentions if m.type in VALUE_TYPES},
        frozenset(map(without_spaces, (title, base_name(title), *called) if title else ())) - {""},
        keys,
    )
    return replace(row, triples=(*row.triples, *_links(row, added))) if title else row


def _links(row: ChunkFacts, added: Iterable[Mention]) -> list[Triple]:
    """The title's links to names that no triple joins to it yet."""
    own = row.key(row.title)
    joined = {own}
    for triple in row.triples:
        ends = {row.key(triple.head), row.key(triple.tail)}
        if own in ends:
            joined |= ends
    links: dict[str, Triple] = {}
    for mention in added:
        key = row.key(mention.surface)
        if key not in joined:
            links.setdefault(key, Triple(row.title, MENTIONS, mention.surface))
    return list(links.values())


def _cover(mention: Mention, matches: Iterable[NameMatch[str]]) -> NameMatch[str] | None:
    """The title that a mention is a part of, or all but equal to."""
    for match in matches:
        if match.start <= mention.start and mention.end <= match.end:
            longer = match.end - match.start > mention.end - mention.start
            return match if longer else None
    return None


def _kind(match: NameMatch[str], named: Iterable[Mention]) -> str:
    """The type of the tagged name that a title covers most of."""
    inside = [m for m in named if match.start <= m.start < match.end]
    return max(inside, key=lambda m: (m.end - m.start, m.type)).type if inside else "OTHER"
