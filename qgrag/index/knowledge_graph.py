"""The knowledge graph from the facts of all chunks: a pure function, so that a grown index equals a fresh one."""

import logging
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import torch
from rapidfuzz import fuzz
from torch import Tensor

from qgrag.corpus.records import Chunk
from qgrag.errors import ConfigError
from qgrag.extraction.records import Facts
from qgrag.index.entity_merge import (
    EntityMergeConfig,
    Merge,
    apply_merges,
    bracket_merges,
    report_merges,
    similar_merges,
)
from qgrag.index.entity_names import EntityNames, NameKeys, sorted_aliases
from qgrag.index.knowledge_graph_tables import (
    DESCRIPTION_SCHEMA,
    ENTITY_SCHEMA,
    MENTION_SCHEMA,
    MERGE_SCHEMA,
    TRIPLE_SCHEMA,
    KnowledgeGraph,
)
from qgrag.index.title_mentions import ChunkFacts, TitleMentions, chunk_facts

logger = logging.getLogger(__name__)

Encode = Callable[[Sequence[str], str], Tensor]
MAY_BE = "may be"


@dataclass(frozen=True)
class KnowledgeGraphConfig:
    """The knowledge graph of DualGraphRAG, FG-RAG and QMKGF.

    Args:
        title_mentions: also look for every document title in the text of every chunk, which finds names that
            taggers miss, and joins them to the chunk's own title.
        triple_similarity: two relations between the same head and tail whose texts are at least this similar,
            from 0 to 1, are one triple, and the more complete one is kept (DualGraphRAG, section 3.2.1).
        max_descriptions: descriptions kept of an entity, in the order of the chunks.
        merge: when two spellings are one entity.
    """

    title_mentions: bool = True
    triple_similarity: float = 0.9
    max_descriptions: int = 50
    merge: EntityMergeConfig = field(default_factory=EntityMergeConfig)

    def __post_init__(self) -> None:
        if not 0 < self.triple_similarity <= 1:
            raise ConfigError(
                f"knowledge_graph.triple_similarity must be above 0 and at most 1, not {self.triple_similarity}"
            )
        if self.max_descriptions < 1:
            raise ConfigError(f"knowledge_graph.max_descriptions must be at least 1, not {self.max_descriptions}")


def build_knowledge_graph(
    chunks: Sequence[Chunk], facts: Sequence[Facts], config: KnowledgeGraphConfig, encode: Encode
) -> KnowledgeGraph:
    """The graph of all chunks; equal chunks and facts give an equal graph, however they came together.

    Names of one `entity_key` are one entity; then `config.merge` joins more. A name that only chunks since
    removed mentioned is not there. Chunk numbers are positions in `chunks`; nothing else depends on their
    order but which descriptions an entity keeps. O(size of the facts), plus a search for neighbours where
    similar names are merged.

    Args:
        chunks: all chunks of an index.
        facts: what was extracted from each.
        config: see there.
        encode: (texts, description of the work) -> unit vectors, float32 [n, d].

    Raises:
        ValueError: not one `Facts` a chunk.
    """
    collected = _collect(chunks, facts, config)
    names = collected.names
    total = len(names.by_key)
    proposals, done = _merge(names, config, encode)
    logger.info("knowledge graph: %s", report_merges(done, proposals, config.merge, total))
    keys = sorted(names.by_key)
    row_of = {key: row for row, key in enumerate(keys)}
    gate = _Gate(names, row_of)
    triples = _triples(collected, gate, config)
    shown = [names.by_key[key] for key in keys]
    mentions = _mentions(collected, gate)
    relations = sorted(set(triples["relation"].to_pylist()))
    graph = KnowledgeGraph(
        entities=pa.table(
            {
                "name": [name.canonical for name in shown],
                "type": [name.type for name in shown],
                "aliases": [sorted_aliases(name) for name in shown],
                "titled": [bool(name.titles) for name in shown],
            },
            schema=ENTITY_SCHEMA,
        ),
        triples=triples,
        mentions=mentions,
        descriptions=_descriptions(collected, gate, config.max_descriptions),
        merges=_rows(MERGE_SCHEMA, [(m.kept, m.merged, m.rule, m.similarity) for m in done]),
        vectors=_entity_vectors([name.canonical for name in shown], mentions, encode),
        relation_vectors=encode(relations, "Embedding relations"),
        dropped=dict(sorted(gate.dropped.items())),
    )
    if gate.dropped["self_loops"]:
        logger.info("knowledge graph: %d triples from a name to itself were dropped", gate.dropped["self_loops"])
    return graph


def preview_merges(
    chunks: Sequence[Chunk], facts: Sequence[Facts], config: KnowledgeGraphConfig, encode: Encode
) -> list[Merge]:
    """Every merge that a build would look at, by name, with the reason where it would refuse it; builds nothing."""
    collected = _collect(chunks, facts, config)
    shown = {key: name.canonical for key, name in collected.names.by_key.items()}
    proposals, _ = _merge(collected.names, config, encode)
    return [Merge(shown[m.kept], shown[m.merged], m.rule, m.similarity, m.refused) for m in proposals]


@dataclass
class _Collected:
    names: EntityNames
    chunks: list[ChunkFacts]


def _collect(chunks: Sequence[Chunk], facts: Sequence[Facts], config: KnowledgeGraphConfig) -> _Collected:
    if len(chunks) != len(facts):
        raise ValueError(f"facts must hold one entry for each of the {len(chunks)} chunks; got {len(facts)}")
    titles = TitleMentions(chunk.title for chunk in chunks) if config.title_mentions else None
    keys = NameKeys(chunk.title for chunk in chunks)
    names = EntityNames(keys)
    rows = []
    for chunk, found in zip(chunks, facts):
        row = chunk_facts(chunk, found, keys, titles)
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
    return _Collected(names, rows)


def _merge(names: EntityNames, config: KnowledgeGraphConfig, encode: Encode) -> tuple[list[Merge], list[Merge]]:
    """All proposals, by key, and the merges done, by name."""
    proposals = bracket_merges(names, config.merge)
    done = apply_merges(names, proposals)
    if config.merge.similarity is not None:
        canonical = [names.by_key[key].canonical for key in sorted(names.by_key)]
        similar = similar_merges(names, encode(canonical, "Embedding names"), config.merge)
        done += apply_merges(names, similar)
        proposals += similar
    return proposals, done


class _Gate:
    """The only way in for an edge: names become rows; what has no name, and what leads to itself, is counted."""

    def __init__(self, names: EntityNames, row_of: dict[str, int]) -> None:
        self._names = names
        self._row_of = row_of
        self.dropped: Counter[str] = Counter()

    def row(self, key: str) -> int:
        """The entity of a key; -1 for the empty one."""
        return self._row_of[self._names.resolve(key)] if key else -1

    def edge(self, head: str, tail: str) -> tuple[int, int] | None:
        """The entities of two keys, if an edge may join them."""
        ends = self.row(head), self.row(tail)
        if min(ends) < 0:
            self.dropped["unnamed"] += 1
            return None
        if ends[0] == ends[1]:
            self.dropped["self_loops"] += 1
            return None
        return ends


@dataclass
class _Statement:
    relation: str
    sentence: str
    chunks: set[int]


def _triples(collected: _Collected, gate: _Gate, config: KnowledgeGraphConfig) -> pa.Table:
    statements: dict[tuple[int, int], dict[str, _Statement]] = defaultdict(dict)
    for number, row in enumerate(collected.chunks):
        for triple in row.triples:
            relation = " ".join(triple.relation.split())
            ends = gate.edge(row.key(triple.head), row.key(triple.tail))
            if ends is None or not relation:
                gate.dropped["unnamed"] += ends is not None
                continue
            known = statements[ends].setdefault(relation.casefold(), _Statement(relation, triple.sentence, set()))
            known.chunks.add(number)
    for ends, number in _namesakes(collected, gate):
        statements[ends].setdefault(MAY_BE, _Statement(MAY_BE, "", set())).chunks.add(number)
    rows = []
    for (head, tail), group in sorted(statements.items()):
        kept = _without_repeats(list(group.values()), config.triple_similarity)
        gate.dropped["repeated_triples"] += len(group) - len(kept)
        for statement in sorted(kept, key=lambda s: s.relation):
            found = sorted(statement.chunks)
            rows.append((head, statement.relation, tail, float(len(found)), statement.sentence, found))
    return _rows(TRIPLE_SCHEMA, rows)


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


def _namesakes(collected: _Collected, gate: _Gate) -> Iterator[tuple[tuple[int, int], int]]:
    """Edges from a plain name to each title that it may mean, where they stayed apart, and the title's chunks."""
    names = collected.names
    titled_in: dict[str, list[int]] = defaultdict(list)
    for number, row in enumerate(collected.chunks):
        titled_in[row.key(row.title)].append(number)
    for plain, bearers in names.bearers().items():
        for key in bearers if plain in names.by_key else ():
            ends = gate.edge(plain, key)
            yield from ((ends, number) for number in titled_in[key] if ends)


def _mentions(collected: _Collected, gate: _Gate) -> pa.Table:
    rows = []
    for number, row in enumerate(collected.chunks):
        counts: Counter[int] = Counter()
        for surface, _, times in row.mentions:
            entity = gate.row(row.key(surface))
            if entity >= 0:
                counts[entity] += times
        title = gate.row(row.key(row.title)) if row.title else -1
        if title >= 0:
            counts[title] = max(counts[title], 1)
        rows += [(entity, number, count, entity == title) for entity, count in counts.items()]
    return _rows(MENTION_SCHEMA, sorted(rows))


def _entity_vectors(names: Sequence[str], mentions: pa.Table, encode: Encode) -> Tensor:
    """Vectors of the names that chunks mention, zeros for the others; float32 [E, d]."""
    rows = sorted(set(mentions["entity"].to_pylist()))
    made = encode([names[row] for row in rows], "Embedding entities")
    return torch.zeros(len(names), made.shape[1]).index_copy_(0, torch.tensor(rows, dtype=torch.long), made)


def _descriptions(collected: _Collected, gate: _Gate, limit: int) -> pa.Table:
    kept: dict[int, dict[str, int]] = defaultdict(dict)
    for number, row in enumerate(collected.chunks):
        for description in row.descriptions:
            entity = gate.row(row.key(description.entity))
            if entity >= 0 and len(kept[entity]) < limit:
                kept[entity].setdefault(description.text, number)
    rows = [(entity, chunk, text) for entity in sorted(kept) for text, chunk in kept[entity].items()]
    return _rows(DESCRIPTION_SCHEMA, rows)


def _rows(schema: pa.Schema, rows: Sequence[tuple[Any, ...]]) -> pa.Table:
    columns = zip(*rows, strict=True) if rows else [()] * len(schema)
    return pa.table([pa.array(list(c), f.type) for c, f in zip(columns, schema, strict=True)], schema=schema)


__all__ = [
    "MAY_BE",
    "EntityMergeConfig",
    "KnowledgeGraph",
    "KnowledgeGraphConfig",
    "build_knowledge_graph",
    "preview_merges",
]
