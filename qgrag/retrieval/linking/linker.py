"""From the names in a query to entities of the knowledge graph."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any, Literal

import torch
from rapidfuzz import fuzz
from spacy.lang.en.stop_words import STOP_WORDS
from torch import Tensor

from qgrag.errors import ConfigError
from qgrag.index.knowledge.graph import KnowledgeGraph
from qgrag.index.vectors import VectorIndex
from qgrag.names.keys import UNTYPED, entity_key
from qgrag.names.spelling import SpellingIndex
from qgrag.names.titles import base_name, head_name
from qgrag.names.tokens import NameMatch, NameMatcher, NameToken, longest_first, name_tokens, token_key
from qgrag.names.vocabulary import PARTICLES, VALUE_TYPES

How = Literal["exact", "alias", "fuzzy", "embedding"]
ALIAS_SCORE = 0.95
SHORT_FORM_SCORE = 0.9
Bearer = tuple[int, How, float]
Form = tuple[str, ...]
Encode = Callable[[Sequence[str]], Tensor]


@dataclass(frozen=True, slots=True)
class Link:
    """An entity that a part of a query means.

    Args:
        surface: the query's own words.
        start: first character in the query; -1 for a name that was not read off the query's text.
        end: one past the last.
        entity: row in the knowledge graph.
        name: its canonical name.
        how: `exact`: the canonical name, by its key or as a title; `alias`: another spelling of it, or its name
            without the bracket or the comma suffix; `fuzzy`: spelt nearly alike; `embedding`: the nearest name by
            cosine.
        score: from 0 to 1; 1 for exact, 0.95 for another spelling, 0.9 for a short form; for a near spelling, that
            times the similarity; for the nearest name, the cosine.
    """

    surface: str
    start: int
    end: int
    entity: int
    name: str
    how: How
    score: float

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class EntityLinkerConfig:
    """How far a spelling may be from an entity's name.

    Args:
        fuzzy: least similarity of spelling, from 0 to 1; 1 switches near spellings off.
        embedding: least cosine of a name and an entity's name; 1 switches it off.
        candidates: entities a name may mean, at most.
    """

    fuzzy: float = 0.85
    embedding: float = 0.7
    candidates: int = 3

    def __post_init__(self) -> None:
        if not (0 < self.fuzzy <= 1 and 0 < self.embedding <= 1):
            raise ConfigError(
                f"linking.fuzzy and linking.embedding lie above 0 and up to 1, not {self.fuzzy} and {self.embedding}"
            )
        if self.candidates < 1:
            raise ConfigError(f"linking.candidates must be at least 1, not {self.candidates}")


class EntityLinker:
    """Links many queries at once against one table of names.

    A query of n words costs O(n L) look-ups, L being the number of lengths that names beginning with one of
    its words have; the number of entities does not matter. What no name matches literally goes to an index of
    trigrams, and then to vector search, all queries' rests in one batch.

    Args:
        graph: its entities are linked to, values such as dates excepted.
        config: see there.
    """

    def __init__(self, graph: KnowledgeGraph, config: EntityLinkerConfig | None = None) -> None:
        self.graph = graph
        self.config = config or EntityLinkerConfig()
        self._titled = graph.entities["titled"].to_pylist()
        self._rows = [row for row, kind in enumerate(graph.types) if kind not in VALUE_TYPES]
        self._mentions = torch.bincount(graph.mention_index[0], minlength=graph.num_entities).tolist()
        self._forms = _forms(graph, self._rows, self._titled)
        self._matcher = NameMatcher({form: form for form in self._forms})

    def link_queries(self, queries: Sequence[str], encode: Encode | None = None) -> list[list[Link]]:
        """The entities that queries name, in the order of their text.

        Known names are found whatever their capitals, the longest first, so that a title that holds 'or' or
        'and' is one name and two names joined by them are two. Capitalised words that are left over are
        looked up by spelling and, with `encode`, by their vector.

        Args:
            queries: B texts.
            encode: names -> unit vectors, float32 [n, d], as the graph's names were encoded; None leaves the
                vectors out.

        Returns:
            B lists; of equal names in a query only the first is linked. Empty where nothing could be linked.
        """
        found: list[list[Link]] = []
        rest: list[tuple[int, str, int, int]] = []
        for number, query in enumerate(queries):
            tokens = name_tokens(query)
            matches = self._names(longest_first(m for m in self._matcher.all(tokens) if _is_name(m, tokens)), tokens)
            found.append([link for match in matches for link in self._literal(query, match)])
            rest += [(number, query[a:b], a, b) for a, b in _left_over(tokens, matches)]
        for (number, *_), links in zip(rest, self._near(rest, encode), strict=True):
            found[number] += links
        return [_in_order(links) for links in found]

    def link_names(self, names: Sequence[Sequence[str]], encode: Encode | None = None) -> list[list[Link]]:
        """The entities that given names mean, as `link_queries` does for the names that it finds itself.

        Args:
            names: for each of B queries, the names that some step took from it.
            encode: see `link_queries`.

        Returns:
            B lists, in the order of the names; a name without an entity leaves no link.
        """
        found: list[list[list[Link]]] = [[[] for _ in row] for row in names]
        rest: list[tuple[int, str, int, int]] = []
        places: list[tuple[int, int]] = []
        for number, row in enumerate(names):
            for place, name in enumerate(row):
                form = token_key(name)
                if form in self._forms:
                    match = NameMatch(form, 0, len(form), 0, len(name))
                    found[number][place] = [_moved(link) for link in self._literal(name, match)]
                else:
                    rest.append((number, name, -1, -1))
                    places.append((number, place))
        for (number, place), links in zip(places, self._near(rest, encode), strict=True):
            found[number][place] = links
        return [_distinct(link for links in row for link in links) for row in found]

    def _names(self, matches: Sequence[NameMatch[Form]], tokens: Sequence[NameToken]) -> list[NameMatch[Form]]:
        """The matches written with capitals; all of them where a query writes none so.

        The capital of the query's first word says nothing: a name of that word alone is one where it is a title,
        or where the texts have it as a person, place or the like.
        """

        def capitalised(match: NameMatch[Form]) -> bool:
            inside = any(token.cased for token in tokens[max(match.first, 1) : match.last])
            return inside or (match.first == 0 and tokens[0].cased and any(map(self._proper, self._forms[match.value])))

        return [m for m in matches if capitalised(m)] or list(matches)

    def _proper(self, row: int) -> bool:
        return self._titled[row] or self.graph.types[row] != UNTYPED

    def _literal(self, query: str, match: NameMatch[Form]) -> list[Link]:
        """What a known name means: its own entity if that is a title, else whoever bears the name."""
        surface = query[match.start : match.end]
        bearers = self._ranked(self._forms[match.value], entity_key(surface))
        own = [b for b in bearers if b[1] == "exact" and self._titled[b[0]]]
        chosen = self._best_spelt(own, surface) or self._fitting(bearers, match.value, query)
        return [
            Link(surface, match.start, match.end, row, self.graph.names[row], how, score)
            for row, how, score in chosen[: self.config.candidates]
        ]

    def _ranked(self, bearers: dict[int, tuple[How, float]], key: str) -> list[Bearer]:
        """Bearers of a form, best first, of equals the one that more chunks mention.

        Forms leave signs out, so that '@anna' has the form of 'Anna'. No title's name that is another by its
        key counts as one spelling among others.
        """
        scored: list[Bearer] = []
        for row, (how, score) in bearers.items():
            own = how != "exact" or self._titled[row] or entity_key(self.graph.names[row]) == key
            scored.append((row, how, score) if own else (row, "alias", ALIAS_SCORE))
        return sorted(scored, key=lambda b: (-b[2], not self._titled[b[0]], -self._mentions[b[0]], b[0]))

    def _best_spelt(self, own: list[Bearer], surface: str) -> list[Bearer]:
        """Of titles that differ in punctuation or an article, those most like the query's words."""
        likeness = [fuzz.ratio(surface.casefold(), self.graph.names[bearer[0]].casefold()) for bearer in own]
        return [bearer for bearer, ratio in zip(own, likeness, strict=True) if ratio == max(likeness)]

    def _fitting(self, bearers: list[Bearer], form: Form, query: str) -> list[Bearer]:
        """Bearers whose bracket or suffix the query speaks of ('the film Agni'), if it does so of any."""
        words = set(token_key(query)) - set(form)
        marks = {row: set(token_key(self.graph.names[row])) for row, how, _ in bearers if how == "alias"}
        shared = set.intersection(*marks.values()) if marks else set()
        named = [b for b in bearers if b[0] in marks and (marks[b[0]] - shared) & words]
        return named or bearers

    def _near(self, rest: Sequence[tuple[int, str, int, int]], encode: Encode | None) -> list[list[Link]]:
        links = [self._spelt(surface, start, end) for _, surface, start, end in rest]
        open_rows = [row for row, found in enumerate(links) if not found]
        if encode is None or not open_rows or self.config.embedding >= 1 or not len(self.graph.vectors):
            return links
        vectors = encode([rest[row][1] for row in open_rows])
        scores, columns = self._vectors.search(vectors, self.config.candidates)
        for row, near, at in zip(open_rows, scores.tolist(), columns.tolist(), strict=True):
            _, surface, start, end = rest[row]
            links[row] = [
                Link(surface, start, end, entity, self.graph.names[entity], "embedding", score)
                for score, column in zip(near, at, strict=True)
                if column >= 0 and score >= self.config.embedding
                for entity in (self._embedded[column],)
            ]
        return links

    def _spelt(self, surface: str, start: int, end: int) -> list[Link]:
        key = entity_key(surface)
        if self.config.fuzzy >= 1 or not key:
            return []
        index, forms = self._spelling
        scores: dict[int, float] = {}
        for place, similarity in index(key, self.config.fuzzy, self.config.candidates):
            for row, (_, score) in self._forms[forms[place]].items():
                scores[row] = max(similarity * score, scores.get(row, 0.0))
        best = sorted(scores, key=lambda row: (-scores[row], -self._mentions[row], row))[: self.config.candidates]
        return [Link(surface, start, end, row, self.graph.names[row], "fuzzy", scores[row]) for row in best]

    @cached_property
    def _spelling(self) -> tuple[SpellingIndex, list[Form]]:
        """Near spellings among all forms of all names, and the form of each of its rows."""
        forms = list(self._forms)
        return SpellingIndex([entity_key(" ".join(form)) for form in forms]), forms

    @cached_property
    def _vectors(self) -> VectorIndex:
        return VectorIndex.exact(self.graph.vectors[self._embedded], str(self.graph.vectors.device))

    @cached_property
    def _embedded(self) -> list[int]:
        """Rows of the entities that have a vector."""
        return [row for row in self._rows if self.graph.embedded[row]]


def _forms(
    graph: KnowledgeGraph, rows: Iterable[int], titled: Sequence[bool]
) -> dict[Form, dict[int, tuple[How, float]]]:
    """Every spelling of every entity -> who bears it."""
    forms: dict[Form, dict[int, tuple[How, float]]] = {}

    def add(spelling: str, row: int, how: How, score: float) -> None:
        form = token_key(spelling)
        for variant in (form, form[1:] if form[:1] == ("the",) and len(form) > 1 else form):
            known = forms.setdefault(variant, {})
            if variant and (row not in known or known[row][1] < score):
                known[row] = (how, score)

    for row in rows:
        add(graph.names[row], row, "exact", 1.0)
        for alias in graph.aliases[row]:
            add(alias, row, "alias", ALIAS_SCORE)
        if titled[row]:
            for short in (base_name(graph.names[row]), head_name(graph.names[row])):
                if short != graph.names[row]:
                    add(short, row, "alias", SHORT_FORM_SCORE)
    return {form: bearers for form, bearers in forms.items() if form}


def _is_name(match: NameMatch[Any], tokens: Sequence[NameToken]) -> bool:
    """Whether a match can be meant as a name: function words alone are one only as several capitalised words."""
    words = tokens[match.first : match.last]
    if all(word.form in STOP_WORDS or len(word.form) < 2 for word in words):
        return len(words) > 2 and all(word.cased for word in words)
    return any(len(word.form) > 2 or word.cased for word in words)


def _left_over(tokens: Sequence[NameToken], matches: Sequence[NameMatch[Any]]) -> list[tuple[int, int]]:
    """Character spans of runs of capitalised words, particles between them included, that no match covers."""
    covered = {i for match in matches for i in range(match.first, match.last)}
    spans = []
    run: list[int] = []
    for i, token in [*enumerate(tokens), (len(tokens), None)]:
        opens = token is not None and i not in covered and token.cased and token.form not in STOP_WORDS
        joins = token is not None and i not in covered and token.form in PARTICLES and run
        if (opens and not (i == 0 and token is not None and token.form in STOP_WORDS)) or joins:
            run.append(i)
        elif run:
            while tokens[run[-1]].form in PARTICLES:
                run.pop()
            spans.append((tokens[run[0]].start, tokens[run[-1]].end))
            run = []
    return spans


def _moved(link: Link) -> Link:
    return Link(link.surface, -1, -1, link.entity, link.name, link.how, link.score)


def _in_order(links: Iterable[Link]) -> list[Link]:
    return _distinct(sorted(links, key=lambda link: (link.start, -link.score)))


def _distinct(links: Iterable[Link]) -> list[Link]:
    seen: dict[int, Link] = {}
    for link in links:
        seen.setdefault(link.entity, link)
    return list(seen.values())
