"""From the words of a query to entities of the knowledge graph."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from qgrag.errors import ConfigError
from qgrag.index.knowledge.graph import KnowledgeGraph
from qgrag.index.vectors import VectorIndex
from qgrag.names.forms import NameToken, name_tokens, words_only
from qgrag.names.matching import NameMatch, longest_first
from qgrag.retrieval.linking.known_names import Bearer, Form, KnownNames, known_names
from qgrag.retrieval.linking.link import Encode, Link, distinct
from qgrag.retrieval.linking.query_words import can_be_name, has_capital, unmatched_names


@dataclass(frozen=True)
class EntityLinkerConfig:
    """How far a spelling may be from an entity's name.

    Args:
        fuzzy: least similarity of spelling, from 0 to 1; 1 switches near spellings off.
        embedding: least cosine of a name and an entity's name; 1 switches it off.
        candidates: entities that one name may mean, at most.
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


@dataclass(frozen=True, slots=True)
class _Unknown:
    """A name that is no spelling of an entity: `surface`, at `start` to `end - 1` of its query."""

    surface: str
    start: int = -1
    end: int = -1


class EntityLinker:
    """Links many queries at once against one table of names.

    A query of n words costs O(n L) look-ups, whatever the number of entities; L is the number of lengths of names
    that begin with one word. Names that the table does not hold go to an index of trigrams, and those that it does
    not know either go to vector search, the names of all queries in one batch.

    Args:
        graph: its entities are linked to, values such as dates excepted.
        config: how far a spelling may be from an entity's name.
    """

    def __init__(self, graph: KnowledgeGraph, config: EntityLinkerConfig | None = None) -> None:
        self.graph = graph
        self.config = config or EntityLinkerConfig()

    def link_queries(self, queries: Sequence[str], encode: Encode | None = None) -> list[list[Link]]:
        """The entities that queries name, in the order of their text.

        Known names are found whatever their capitals, the longest first: a title that holds 'or' or 'and' is one
        name, and two names joined by them are two. Capitalised words that are left over are looked up by spelling
        and, with `encode`, by their vector.

        Args:
            queries: B texts.
            encode: see `Encode`; None leaves the vectors out.

        Returns:
            B lists; of links to one entity in a query only the first. Empty where nothing could be linked.
        """
        found: list[list[Link]] = []
        unknown: list[_Unknown] = []
        owners: list[int] = []
        for number, query in enumerate(queries):
            tokens = name_tokens(query)
            matches = self._known_in(tokens)
            found.append([link for match in matches for link in self._links(query, match)])
            spans = unmatched_names(tokens, matches)
            unknown += [_Unknown(query[start:end], start, end) for start, end in spans]
            owners += [number] * len(spans)
        for number, links in zip(owners, self._nearest(unknown, encode), strict=True):
            found[number] += links
        return [distinct(sorted(links, key=lambda link: (link.start, -link.score))) for links in found]

    def link_names(self, names: Sequence[Sequence[str]], encode: Encode | None = None) -> list[list[Link]]:
        """The entities that given names mean, as `link_queries` does for the names that it finds itself.

        Args:
            names: for each of B queries, the names that some step took from it.
            encode: see `link_queries`.

        Returns:
            B lists, in the order of the names; a name without an entity leaves no link.
        """
        found: list[list[list[Link]]] = [[[] for _ in row] for row in names]
        unknown: list[_Unknown] = []
        places: list[tuple[int, int]] = []
        for number, row in enumerate(names):
            for place, name in enumerate(row):
                form = words_only(name)
                if form in self._known:
                    links = self._links(name, NameMatch(form, 0, len(form), 0, len(name)))
                    found[number][place] = [replace(link, start=-1, end=-1) for link in links]
                else:
                    unknown.append(_Unknown(name))
                    places.append((number, place))
        for (number, place), links in zip(places, self._nearest(unknown, encode), strict=True):
            found[number][place] = links
        return [distinct(link for links in row for link in links) for row in found]

    @cached_property
    def _known(self) -> KnownNames:
        return known_names(self.graph)

    def _known_in(self, tokens: Sequence[NameToken]) -> list[NameMatch[Form]]:
        """The known names that are written with capitals; all known names where a query writes none so.

        The capital of the query's first word says nothing. A name of that word alone counts where it is a title, or
        where the texts have it as a person, place or the like.
        """
        matches = longest_first(m for m in self._known.matcher.all(tokens) if can_be_name(m, tokens))

        def capitalised(match: NameMatch[Form]) -> bool:
            opens = match.first == 0 and tokens[0].cased
            return has_capital(match, tokens) or (opens and self._known.is_proper(match.value))

        return [m for m in matches if capitalised(m)] or matches

    def _links(self, query: str, match: NameMatch[Form]) -> list[Link]:
        """The best entities that a known name means."""
        surface = query[match.start : match.end]
        bearers = self._known.meant_by(surface, match.value, query)[: self.config.candidates]
        return [self._link(surface, match.start, match.end, bearer) for bearer in bearers]

    def _nearest(self, unknown: Sequence[_Unknown], encode: Encode | None) -> list[list[Link]]:
        """For each name the entities of near spellings; where there are none, those of near vectors."""
        links = [self._spelt_like(name) for name in unknown]
        left = [row for row, found in enumerate(links) if not found]
        if encode is None or not left or self.config.embedding >= 1 or not len(self.graph.vectors):
            return links
        vectors = encode([unknown[row].surface for row in left])
        scores, columns = self._vectors.search(vectors, self.config.candidates)
        for row, near, at in zip(left, scores.tolist(), columns.tolist(), strict=True):
            name = unknown[row]
            links[row] = [
                self._link(name.surface, name.start, name.end, (self._embedded[column], "embedding", score))
                for score, column in zip(near, at, strict=True)
                if column >= 0 and score >= self.config.embedding
            ]
        return links

    def _spelt_like(self, name: _Unknown) -> list[Link]:
        if self.config.fuzzy >= 1:
            return []
        bearers = self._known.spelt_like(name.surface, self.config.fuzzy, self.config.candidates)
        return [self._link(name.surface, name.start, name.end, bearer) for bearer in bearers]

    def _link(self, surface: str, start: int, end: int, bearer: Bearer) -> Link:
        row, how, score = bearer
        return Link(surface, start, end, row, self.graph.names[row], how, score)

    @cached_property
    def _vectors(self) -> VectorIndex:
        return VectorIndex.exact(self.graph.vectors[self._embedded], str(self.graph.vectors.device))

    @cached_property
    def _embedded(self) -> list[int]:
        """Rows of the entities that have a vector."""
        return [row for row in self._known.rows if self.graph.embedded[row]]
