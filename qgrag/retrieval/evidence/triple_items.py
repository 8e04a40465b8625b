"""Triples by name, for evidence: each distinct one is looked up once a batch."""

from typing import Any, NamedTuple

import torch
from torch import Tensor

from qgrag.index.knowledge.build import KnowledgeGraph
from qgrag.index.reader import Index


class TripleItem(NamedTuple):
    """A triple as evidence shows it.

    Args:
        head: name.
        relation: as the text has it.
        tail: name.
        chunks: rows of the chunks that say it.
    """

    head: str
    relation: str
    tail: str
    chunks: list[int]

    def named(self) -> dict[str, str]:
        return {"head": self.head, "relation": self.relation, "tail": self.tail}

    def with_chunks(self, index: Index) -> dict[str, Any]:
        """The triple and the ids of its chunks."""
        return {**self.named(), "chunks": [index.chunks[chunk].id for chunk in self.chunks]}


def triple_items(graph: KnowledgeGraph, rows: Tensor) -> dict[int, TripleItem]:
    """The given triples by row.

    Args:
        graph: of the index.
        rows: int64 [M], with repeats or without.
    """
    distinct = torch.unique(rows)
    heads, tails = graph.edge_index[:, distinct].tolist()
    chunks, ptr = graph.triple_chunks
    bounds = zip(ptr[distinct].tolist(), ptr[distinct + 1].tolist(), strict=True)
    names, relations = graph.names, graph.relations
    return {
        row: TripleItem(names[head], relations[row], names[tail], chunks[start:stop].tolist())
        for row, head, tail, (start, stop) in zip(distinct.tolist(), heads, tails, bounds, strict=True)
    }
