"""From the facts of all chunks to the rows of the knowledge graph's tables, with names as keys."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rapidfuzz import fuzz

from qgrag.corpus.records import Chunk
from qgrag.extraction.records import Facts
from qgrag.index.knowledge.title_mentions import ChunkFacts, TitleMentions, chunk_facts
from qgrag.names.keys import EntityNames, NameKeys

_BLANK_LINE = re.compile(r"\n\s*\n")
_HEADING = re.compile(r"#{1,6} [^\n]*\Z")
MAY_BE = "may be"
"""Relation from a plain name to a title that bears it with a bracket, where both stayed apart."""


@dataclass(frozen=True, slots=True)
class Collected:
    """All names, and each chunk's facts with its titles in place."""

    names: EntityNames
    chunks: list[ChunkFacts]


def collect(chunks: Sequence[Chunk], facts: Sequence[Facts], *, titles: bool) -> Collected:
    """Count every spelling of every name.

    Args:
        chunks: all chunks.
        facts: what was extracted from each.
        titles: whether to look for all titles in all texts.

    Raises:
        ValueError: not one `Facts` a chunk.
    """
    if len(chunks) != len(facts):
        raise ValueError(f"facts must hold one entry for each of the {len(chunks)} chunks; got {len(facts)}")
    finder = TitleMentions(chunk.title for chunk in chunks) if titles else None
    keys = NameKeys(chunk.title for chunk in chunks)
    names = EntityNames(keys)
    rows = []
    for chunk, found in zip(chunks, facts, strict=True):
        row = chunk_facts(chunk, found, keys, finder)
        rows.append(row)
        if row.title:
            names.add(row.title, row.key(row.title), title=True)
        for surface, kind, _ in row.mentions:
            names.add(surface, row.key(surface), kind)
        for triple in row.triples:
            for surface in (triple.head, triple.tail):
                names.add(surface, row.key(surface), row.value_types.get(surface, ""))
        for description in row.descriptions:
            names.add(description.entity, row.key(description.entity))
    return Collected(names, rows)


class Gate:
    """The only way into the graph: what has no name, says nothing or leads to itself is refused and counted.

    Args:
        names: after merging.
    """

    def __init__(self, names: EntityNames) -> None:
        self._names = names
        self.used: set[str] = set()
        self.dropped: Counter[str] = Counter()

    def node(self, key: str) -> str:
        """The key that a key stands for; empty for the empty one."""
        if not key:
            return ""
        entity = self._names.resolve(key)
        self.used.add(entity)
        return entity

    def edge(self, head: str, relation: str, tail: str) -> tuple[str, str] | None:
        """The keys of both ends, if an edge may join them."""
        if not (head and relation and tail):
            self.dropped["unnamed"] += 1
            return None
        ends = self._names.resolve(head), self._names.resolve(tail)
        if ends[0] == ends[1]:
            self.dropped["self_loops"] += 1
            return None
        self.used.update(ends)
        return ends


@dataclass(slots=True)
class _Statement:
    relation: str
    sentence: str
    chunks: set[int]


def triple_rows(
    collected: Collected, gate: Gate, similarity: float
) -> list[tuple[str, str, str, float, str, list[int]]]:
    """(head, tail, relation, weight, sentence, chunks), sorted; alike relations between one pair are one row."""
    statements: dict[tuple[str, str], dict[str, _Statement]] = defaultdict(dict)
    for number, row in enumerate(collected.chunks):
        for triple in row.triples:
            relation = " ".join(triple.relation.split())
            if ends := gate.edge(row.key(triple.head), relation, row.key(triple.tail)):
                known = statements[ends].setdefault(relation.casefold(), _Statement(relation, triple.sentence, set()))
                known.relation = max(known.relation, relation)
                known.chunks.add(number)
    for ends, number in _namesakes(collected, gate):
        statements[ends].setdefault(MAY_BE, _Statement(MAY_BE, "", set())).chunks.add(number)
    rows = []
    for (head, tail), group in sorted(statements.items()):
        kept = _without_repeats(list(group.values()), similarity)
        gate.dropped["repeated_triples"] += len(group) - len(kept)
        for statement in sorted(kept, key=lambda s: s.relation):
            found = sorted(statement.chunks)
            rows.append((head, tail, statement.relation, float(len(found)), statement.sentence, found))
    return rows


def mention_rows(collected: Collected, gate: Gate) -> list[tuple[str, int, int, bool]]:
    """(entity, chunk, count, whether it is the chunk's title)."""
    rows = []
    for number, row in enumerate(collected.chunks):
        counts: Counter[str] = Counter()
        for surface, _, times in row.mentions:
            if entity := gate.node(row.key(surface)):
                counts[entity] += times
        title = gate.node(row.key(row.title)) if row.title else ""
        if title:
            counts[title] = max(counts[title], 1)
        rows += [(entity, number, count, entity == title) for entity, count in counts.items()]
    return rows


def description_rows(collected: Collected, gate: Gate, limit: int) -> list[tuple[str, int, str]]:
    """(entity, chunk, text), sorted by entity, then chunk; at most `limit` an entity.

    Parsers join a heading with the sentence below it: of a text with blank lines the last paragraph that names the
    entity is taken, and Markdown headings tell nothing.
    """
    kept: dict[str, dict[str, int]] = defaultdict(dict)
    for number, row in enumerate(collected.chunks):
        for description in row.descriptions:
            text = _told(description.text, description.entity)
            entity = gate.node(row.key(description.entity)) if text else ""
            if entity and len(kept[entity]) < limit:
                kept[entity].setdefault(text, number)
    return [(entity, chunk, text) for entity in sorted(kept) for text, chunk in kept[entity].items()]


def _told(text: str, name: str) -> str:
    paragraphs = [part.strip() for part in _BLANK_LINE.split(text)]
    paragraphs = [part for part in paragraphs if part and not _HEADING.match(part)]
    naming = [part for part in paragraphs if name in part]
    return (naming or paragraphs or [""])[-1]


def _without_repeats(group: list[_Statement], threshold: float) -> list[_Statement]:
    """Statements about one pair whose relations say different things; of similar ones the most complete stays."""
    kept: list[_Statement] = []
    for statement in sorted(group, key=lambda s: (-len(s.relation), s.relation)):
        for other in kept:
            if fuzz.ratio(statement.relation.casefold(), other.relation.casefold()) >= 100 * threshold:
                other.chunks |= statement.chunks
                break
        else:
            kept.append(statement)
    return kept


def _namesakes(collected: Collected, gate: Gate) -> Iterator[tuple[tuple[str, str], int]]:
    """Edges from a plain name to each title that it may mean, where they stayed apart, and the title's chunks."""
    names = collected.names
    titled_in: dict[str, list[int]] = defaultdict(list)
    for number, row in enumerate(collected.chunks):
        titled_in[row.key(row.title)].append(number)
    for plain, bearers in names.bearers().items():
        for key in bearers if plain in gate.used else ():
            ends = gate.edge(plain, MAY_BE, key)
            yield from ((ends, number) for number in titled_in[key] if ends)
