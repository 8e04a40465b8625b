"""The knowledge graph from the facts of all chunks: a pure function, so that a grown index equals a fresh one."""

import logging
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import pyarrow as pa
import torch
from torch import Tensor

from qgrag.corpus.records import Chunk
from qgrag.errors import ConfigError
from qgrag.extraction.records import Facts
from qgrag.index.knowledge.entity_merge import (
    EntityMergeConfig,
    Merge,
    apply_merges,
    bracket_merges,
    report_merges,
    similar_merges,
)
from qgrag.index.knowledge.graph import (
    DESCRIPTION_SCHEMA,
    ENTITY_SCHEMA,
    MENTION_SCHEMA,
    MERGE_SCHEMA,
    TRIPLE_SCHEMA,
    KnowledgeGraph,
)
from qgrag.index.knowledge.rows import (
    MAY_BE,
    Gate,
    collect,
    description_rows,
    mention_rows,
    triple_rows,
)
from qgrag.names.keys import EntityNames, sorted_aliases

logger = logging.getLogger(__name__)

Encode = Callable[[Sequence[str], str], Tensor]


@dataclass(frozen=True)
class KnowledgeGraphConfig:
    """The knowledge graph of DualGraphRAG, FG-RAG and QMKGF.

    Args:
        title_mentions: also look for every document title in the text of every chunk, which finds names that
            taggers miss, and joins them to the chunk's own title.
        triple_similarity: two relations between the same head and tail whose texts are at least this similar,
            from 0 to 1, are one triple, and the more complete one is kept (DualGraphRAG, section 3.2.1).
        max_descriptions: descriptions kept of an entity, in the order of the chunks.
        embed_from: an entity is embedded if so many chunks mention it, or if it is a title. 1 embeds every entity
            that is mentioned; 2 leaves out names that occur once, about two thirds of them in most corpora.
        embed: further texts that are embedded, so that no query waits for it: `descriptions`, which `fg` compares
            with the query (20 thousand of them for 6 thousand passages), and `triples`, which `qmkgf` does (86
            thousand). What is not embedded here is embedded for each query anew; results are the same.
        merge: when two spellings are one entity.
        extractor: who reads facts off the chunks: `local` rules on spaCy's parse; a language model that gives
            `triples` in one pass (DualGraphRAG), or `entities` and relations with descriptions (FG-RAG, QMKGF).
        gleaning: further passes of `entities` over each chunk, which ask for what is missing.
    """

    title_mentions: bool = True
    triple_similarity: float = 0.9
    max_descriptions: int = 50
    embed_from: int = 1
    embed: tuple[Literal["descriptions", "triples"], ...] = ("descriptions",)
    merge: EntityMergeConfig = field(default_factory=EntityMergeConfig)
    extractor: Literal["local", "triples", "entities"] = "local"
    gleaning: int = 1

    def __post_init__(self) -> None:
        if not 0 < self.triple_similarity <= 1:
            raise ConfigError(
                f"knowledge_graph.triple_similarity must be above 0 and at most 1, not {self.triple_similarity}"
            )
        for name in ("max_descriptions", "embed_from"):
            if getattr(self, name) < 1:
                raise ConfigError(f"knowledge_graph.{name} must be at least 1, not {getattr(self, name)}")
        if self.gleaning < 0:
            raise ConfigError(f"knowledge_graph.gleaning must not be negative, not {self.gleaning}")


def build_knowledge_graph(
    chunks: Sequence[Chunk], facts: Sequence[Facts], config: KnowledgeGraphConfig, encode: Encode
) -> KnowledgeGraph:
    """The graph of all chunks; equal chunks and facts give an equal graph, however they came together.

    Names of one `without_spaces` are one entity; then `config.merge` joins more. A name that only chunks since
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
    collected = collect(chunks, facts, titles=config.title_mentions)
    names = collected.names
    total = len(names.by_key)
    proposals, done = _merge(names, config, encode)
    logger.info("knowledge graph: %s", report_merges(done, proposals, config.merge, total))
    gate = Gate(names)
    mentions = mention_rows(collected, gate)
    descriptions = description_rows(collected, gate, config.max_descriptions)
    triples = triple_rows(collected, gate, config.triple_similarity)
    if gate.dropped["self_loops"]:
        logger.info("knowledge graph: %d triples from a name to itself were dropped", gate.dropped["self_loops"])
    keys = sorted(gate.used)
    row_of = {key: row for row, key in enumerate(keys)}
    entities = [names.by_key[key] for key in keys]
    frequency = Counter(row_of[entity] for entity, *_ in mentions)
    embedded = [row for row in sorted(frequency) if frequency[row] >= config.embed_from or entities[row].titles]
    shown = [entity.canonical for entity in entities]
    relations = sorted({relation for _, _, relation, *_ in triples})
    texts = list(dict.fromkeys(text for *_, text in descriptions))
    statements = [f"{shown[row_of[h]]} {r} {shown[row_of[t]]}" for h, t, r, *_ in triples]
    return KnowledgeGraph(
        entities=_table(ENTITY_SCHEMA, [(n.canonical, n.type, sorted_aliases(n), bool(n.titles)) for n in entities]),
        triples=_table(TRIPLE_SCHEMA, [(row_of[h], r, row_of[t], *rest) for h, t, r, *rest in triples]),
        mentions=_table(MENTION_SCHEMA, sorted((row_of[entity], *rest) for entity, *rest in mentions)),
        descriptions=_table(DESCRIPTION_SCHEMA, [(row_of[entity], *rest) for entity, *rest in descriptions]),
        merges=_table(MERGE_SCHEMA, [(m.kept, m.merged, m.rule, m.similarity) for m in done]),
        vectors=_entity_vectors(shown, embedded, encode),
        relation_vectors=encode(relations, "Embedding relations"),
        description_vectors=encode(texts if "descriptions" in config.embed else [], "Embedding descriptions"),
        triple_vectors=encode(statements if "triples" in config.embed else [], "Embedding triples"),
        dropped=dict(sorted(gate.dropped.items())),
    )


def preview_merges(
    chunks: Sequence[Chunk], facts: Sequence[Facts], config: KnowledgeGraphConfig, encode: Encode
) -> list[Merge]:
    """Every merge that a build would look at, by name, with the reason where it would refuse it; builds nothing."""
    collected = collect(chunks, facts, titles=config.title_mentions)
    shown = {key: name.canonical for key, name in collected.names.by_key.items()}
    proposals, _ = _merge(collected.names, config, encode)
    return [Merge(shown[m.kept], shown[m.merged], m.rule, m.similarity, m.refused) for m in proposals]


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


def _entity_vectors(names: Sequence[str], rows: Sequence[int], encode: Encode) -> Tensor:
    """Vectors of the names in the given rows, zeros for the others; float32 [E, d]."""
    made = encode([names[row] for row in rows], "Embedding entities")
    return torch.zeros(len(names), made.shape[1]).index_copy_(0, torch.tensor(rows, dtype=torch.long), made)


def _table(schema: pa.Schema, rows: Sequence[tuple[Any, ...]]) -> pa.Table:
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
