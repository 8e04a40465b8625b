"""The sentences of each candidate that are nearest to the question: vectors that the index stores."""

from dataclasses import dataclass

import torch
from torch import Tensor

from qgrag.graph.segments import top_per_group
from qgrag.retrieval.methods.auto.pool import Pool
from qgrag.retrieval.methods.auto.tables import Tables
from qgrag.retrieval.steps.paired_dots import paired_dots

ITEMS = 8
"""Items per candidate, at most."""


@dataclass(frozen=True)
class SentenceItems:
    """The question nodes (pairs and sentences) of K candidates of each of B questions, nearest first.

    Where a chunk has no node, or the index no query graph, the passage stands for it.

    Args:
        vectors: float32 [B, K, n, d]; 0 in the padding.
        mask: bool [B, K, n], True for an item.
        nodes: int64 [B, K, n], rows of the query graph's nodes; -1 for a passage and in the padding.
    """

    vectors: Tensor
    mask: Tensor
    nodes: Tensor


def sentence_items(tables: Tables, pool: Pool, vectors: Tensor, size: int = ITEMS) -> SentenceItems:
    """The items of a batch of pools.

    Args:
        tables: of the index.
        pool: K candidates of each of B questions.
        vectors: float32 [B, d], of the questions.
        size: n.
    """
    batch, width = pool.chunks.shape
    passages = tables.index.passages.vectors
    device = vectors.device
    items = torch.zeros(batch * width, size, passages.shape[1], device=device)
    mask = torch.zeros(batch * width, size, dtype=torch.bool, device=device)
    nodes = torch.full((batch * width, size), -1, dtype=torch.long, device=device)
    query, column = pool.mask.nonzero().unbind(1)
    chunk, slot = pool.chunks[query, column], query * width + column
    items[slot, 0], mask[slot, 0] = passages[chunk.to(passages.device)].to(device), True
    if tables.has_nodes:
        owner, node = tables.chunk_nodes.gather(chunk)
        stored = tables.index.query_graph.vectors.vectors
        kept = top_per_group(owner, paired_dots(vectors, query[owner], stored, node), size)
        owner, node = owner[kept], node[kept]
        starts = torch.searchsorted(owner, torch.arange(len(chunk), device=device))
        at = (slot[owner], torch.arange(len(owner), device=device) - starts[owner])
        items[at], mask[at], nodes[at] = stored[node.to(stored.device)].to(device), True, node
    shape = (batch, width, size)
    return SentenceItems(items.view(*shape, -1), mask.view(shape), nodes.view(shape))
