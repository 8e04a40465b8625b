"""All spellings of the entities of a graph, and which entities each spelling means."""

from collections.abc import Iterable
from functools import cached_property
from weakref import WeakKeyDictionary

import torch
from rapidfuzz import fuzz

from qgrag.index.knowledge.graph import KnowledgeGraph
from qgrag.names.forms import without_spaces, words_only
from qgrag.names.matching import NameMatcher
from qgrag.names.spelling import SpellingIndex
from qgrag.names.titles import base_name, head_name
from qgrag.names.vocabulary import UNTYPED, VALUE_TYPES, is_acronym
from qgrag.retrieval.linking.link import How

ALIAS_SCORE = 0.95
SHORT_FORM_SCORE = 0.9
Bearer = tuple[int, How, float]
"""An entity's row, how a spelling names it, and the score of that."""
Form = tuple[str, ...]
"""A spelling as `words_only`."""


def known_names(graph: KnowledgeGraph) -> "KnownNames":
    """The names of a graph, collected once for all the retrievers that use it."""
    if graph not in _OF_GRAPH:
        _OF_GRAPH[graph] = KnownNames(graph)
    return _OF_GRAPH[graph]


class KnownNames:
    """Names of a graph's entities; values such as dates are left out.

    Its size is linear in the number of spellings. It keeps no reference to the graph.

    Args:
        graph: its entities bear the names.
    """

    def __init__(self, graph: KnowledgeGraph) -> None:
        self.names = graph.names
        self.rows = [row for row, kind in enumerate(graph.types) if kind not in VALUE_TYPES]
        self._types = graph.types
        self._titled: list[bool] = graph.entities["titled"].to_pylist()
        self._mentions: list[int] = torch.bincount(graph.mention_index[0], minlength=graph.num_entities).tolist()
        self._bearers = _bearers(graph, self.rows, self._titled)
        self.matcher = NameMatcher({form: form for form in self._bearers})

    def __contains__(self, form: Form) -> bool:
        return form in self._bearers

    def is_proper(self, form: Form) -> bool:
        """Whether a bearer of the form is a title, or has a type that says something."""
        return any(self._titled[row] or self._types[row] != UNTYPED for row in self._bearers[form])

    def meant_by(self, surface: str, form: Form, query: str) -> list[Bearer]:
        """The entities that a known name means in a query, best first.

        They are the title that is spelt so; where there is none, every bearer of the name, or those of them whose
        bracket or suffix the query speaks of.

        Args:
            surface: the query's own words.
            form: `words_only` of the surface, or a form that the matcher found there.
            query: the whole query.
        """
        key = without_spaces(surface)
        ranked = self._ranked(self._bearers[form], key)
        if is_acronym(key):
            ranked = [b for b in ranked if without_spaces(self.names[b[0]]) == key] or ranked
        own = [b for b in ranked if b[1] == "exact" and self._titled[b[0]]]
        return self._best_spelt(own, surface) or self._fitting(ranked, form, query)

    def spelt_like(self, surface: str, cutoff: float, limit: int) -> list[Bearer]:
        """At most `limit` bearers of names whose spelling is at least `cutoff` like the surface, best first."""
        key = without_spaces(surface)
        if not key:
            return []
        index, forms = self._spelling
        scores: dict[int, float] = {}
        for place, similarity in index(key, cutoff, limit):
            for row, (_, score) in self._bearers[forms[place]].items():
                scores[row] = max(similarity * score, scores.get(row, 0.0))
        best = sorted(scores, key=lambda row: (-scores[row], -self._mentions[row], row))
        return [(row, "fuzzy", scores[row]) for row in best[:limit]]

    @cached_property
    def _spelling(self) -> tuple[SpellingIndex, list[Form]]:
        """Near spellings among all forms, and the form of each of its rows."""
        forms = list(self._bearers)
        return SpellingIndex([without_spaces(" ".join(form)) for form in forms]), forms

    def _ranked(self, bearers: dict[int, tuple[How, float]], key: str) -> list[Bearer]:
        """Bearers of a form, best first; of equal ones titles first, then those that more chunks mention.

        A form leaves signs out: '@anna' has the form of 'Anna'. So an entity without a title whose name has another
        key than the surface counts as one of another spelling.
        """
        scored: list[Bearer] = []
        for row, (how, score) in bearers.items():
            own = how != "exact" or self._titled[row] or without_spaces(self.names[row]) == key
            scored.append((row, how, score) if own else (row, "alias", ALIAS_SCORE))
        return sorted(scored, key=lambda b: (-b[2], not self._titled[b[0]], -self._mentions[b[0]], b[0]))

    def _best_spelt(self, own: list[Bearer], surface: str) -> list[Bearer]:
        """Of titles that differ in punctuation or an article, those most like the query's words."""
        likeness = [fuzz.ratio(surface.casefold(), self.names[bearer[0]].casefold()) for bearer in own]
        return [bearer for bearer, ratio in zip(own, likeness, strict=True) if ratio == max(likeness)]

    def _fitting(self, bearers: list[Bearer], form: Form, query: str) -> list[Bearer]:
        """Bearers whose bracket or suffix the query speaks of ('the film Agni'); all where it speaks of none."""
        words = set(words_only(query)) - set(form)
        marks = {row: set(words_only(self.names[row])) for row, how, _ in bearers if how == "alias"}
        shared = set.intersection(*marks.values()) if marks else set()
        named = [b for b in bearers if b[0] in marks and (marks[b[0]] - shared) & words]
        return named or bearers


_OF_GRAPH: WeakKeyDictionary[KnowledgeGraph, KnownNames] = WeakKeyDictionary()


def _bearers(
    graph: KnowledgeGraph, rows: Iterable[int], titled: list[bool]
) -> dict[Form, dict[int, tuple[How, float]]]:
    """Every spelling of every entity -> the rows that bear it, each with its best score."""
    forms: dict[Form, dict[int, tuple[How, float]]] = {}

    def add(spelling: str, row: int, how: How, score: float) -> None:
        form = words_only(spelling)
        for variant in (form, form[1:] if form[:1] == ("the",) else form):
            if variant:
                known = forms.setdefault(variant, {})
                if row not in known or known[row][1] < score:
                    known[row] = (how, score)

    for row in rows:
        add(graph.names[row], row, "exact", 1.0)
        for alias in graph.aliases[row]:
            add(alias, row, "alias", ALIAS_SCORE)
        if titled[row]:
            for short in (base_name(graph.names[row]), head_name(graph.names[row])):
                if short != graph.names[row]:
                    add(short, row, "alias", SHORT_FORM_SCORE)
    return forms
