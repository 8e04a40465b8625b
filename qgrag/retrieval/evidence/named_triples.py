"""Triples by name, for evidence: each distinct one is looked up once per batch."""

from dataclasses import fields
from functools import cache
from typing import Any, TypeVar

import torch
from torch import Tensor

from qgrag.graph import Ragged
from qgrag.index.knowledge.build import KnowledgeGraph
from qgrag.index.reader import Index
from qgrag.retrieval.evidence.items import NamedTriple, SourcedTriple

T = TypeVar("T", bound=NamedTriple)


def named_triples(graph: KnowledgeGraph, rows: Tensor) -> dict[int, NamedTriple]:
    """The given triples by row.

    Args:
        graph: of the index.
        rows: int64 [M], with repeats or without.
    """
    distinct = torch.unique(rows)
    heads, tails = graph.edge_index[:, distinct].tolist()
    names, relations = graph.names, graph.relations
    return {
        row: NamedTriple(names[head], relations[row], names[tail], triple_row=row, head_row=head, tail_row=tail)
        for row, head, tail in zip(distinct.tolist(), heads, tails, strict=True)
    }


def sourced_triples(graph: KnowledgeGraph, index: Index, rows: Tensor) -> dict[int, SourcedTriple]:
    """The given triples by row, with the chunks that say them.

    Args:
        graph: of the index.
        index: its chunks are named by id.
        rows: int64 [M], with repeats or without.
    """
    triples = named_triples(graph, rows)
    owner, chunk = graph.triple_chunks.gather(torch.tensor(list(triples), dtype=torch.long, device=rows.device))
    sources = Ragged.from_batch(chunk, owner, len(triples)).to_lists()
    found = {}
    for (row, triple), said in zip(triples.items(), map(tuple, sources), strict=True):
        ids = tuple(index.chunks[chunk].id for chunk in said)
        found[row] = extended(triple, SourcedTriple, chunks=ids, chunk_rows=said)
    return found


def extended(triple: NamedTriple, cls: type[T], **further: Any) -> T:
    """The triple as an object of a class that has the further fields."""
    known: Any = type(triple)
    return cls(**{name: getattr(triple, name) for name in _names(known)}, **further)


@cache
def _names(cls: type[NamedTriple]) -> tuple[str, ...]:
    return tuple(field.name for field in fields(cls))
