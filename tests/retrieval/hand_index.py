"""A small index whose graph and vectors are written by hand, so that every score can be worked out on paper."""

from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor

from qgrag.corpus.records import Chunk
from qgrag.extraction.records import Description, Facts, Mention, Triple
from qgrag.index.knowledge.build import KnowledgeGraph, KnowledgeGraphConfig, build_knowledge_graph
from qgrag.index.vectors import VectorIndex

DIMENSION = 6
NOWHERE = DIMENSION - 1

Row = tuple[str, str, Sequence[tuple[str, str, str]]]


class HandEmbedder:
    """Vectors from a table: text -> cosines with the first axes; whatever is left points along the last axis."""

    def __init__(self, table: Mapping[str, Sequence[float]]) -> None:
        self.table = dict(table)

    def encode(self, texts: Sequence[str], *, description: str = "") -> Tensor:
        made = torch.zeros(len(texts), DIMENSION)
        for row, text in enumerate(texts):
            cosines = torch.tensor(self.table.get(text, ()), dtype=torch.float32)
            made[row, : len(cosines)] = cosines
            made[row, NOWHERE] = (1 - cosines.square().sum()).clamp(min=0).sqrt()
        return made

    encode_queries = encode
    name = fingerprint = "by hand"
    dimension = DIMENSION


def names_in(text: str, triples: Sequence[tuple[str, str, str]]) -> list[str]:
    ends = dict.fromkeys(end for head, _, tail in triples for end in (head, tail))
    return [end for end in ends if end in text]


def facts_of(text: str, triples: Sequence[tuple[str, str, str]]) -> Facts:
    names = names_in(text, triples)
    return Facts(
        tuple(Mention(name, "PERSON", text.find(name), text.find(name) + len(name)) for name in names),
        tuple(Triple(head, relation, tail, text) for head, relation, tail in triples),
        tuple(Description(name, text) for name in names),
    )


def hand_graph(
    rows: Sequence[Row], embedder: HandEmbedder, config: KnowledgeGraphConfig | None = None
) -> tuple[list[Chunk], KnowledgeGraph]:
    """Rows of (title, text, triples); chunk i has the id `d{i}-0`."""
    chunks = [Chunk(f"d{i}", 0, 0, len(text), text, title) for i, (title, text, _) in enumerate(rows)]
    facts = [facts_of(text, triples) for _, text, triples in rows]
    config = config or KnowledgeGraphConfig()
    graph = build_knowledge_graph(chunks, facts, config, lambda texts, _: embedder.encode(texts))
    return chunks, graph


def hand_index(
    rows: Sequence[Row], vectors: Mapping[str, Sequence[float]], config: KnowledgeGraphConfig | None = None
) -> Any:
    """What a retriever needs of an `Index`."""
    embedder = HandEmbedder(vectors)
    chunks, graph = hand_graph(rows, embedder, config)
    return SimpleNamespace(
        chunks=chunks,
        knowledge_graph=graph,
        passages=VectorIndex.exact(embedder.encode([chunk.passage for chunk in chunks])),
        embedder=embedder,
        document_ids=[(chunk.document_id,) for chunk in chunks],
    )
