"""The sentences of each candidate that the evidence model reads: vectors that the index stores."""

import torch
from torch import Tensor

from qgrag.retrieval.methods.auto.pool import Pool
from qgrag.retrieval.methods.auto.tables import Tables, gather


def sentence_items(tables: Tables, pool: Pool, vectors: Tensor, size: int) -> tuple[Tensor, Tensor, Tensor]:
    """The question nodes (pairs and sentences) of each candidate that are nearest to its question.

    Args:
        tables: of the index.
        pool: K candidates of each of B questions.
        vectors: float32 [B, d], of the questions.
        size: n, most items per candidate.

    Returns:
        float32 [B, K, n, d], nearest first; where a chunk has no node, or the index no query graph, the passage's
        vector alone; bool [B, K, n], True for an item; int64 [B, K, n], the nodes' rows, -1 for a passage.
    """
    batch, width = pool.chunks.shape
    passages = tables.index.passages.vectors
    items = torch.zeros(batch * width, size, passages.shape[1], device=vectors.device)
    filled = torch.zeros(batch * width, size, dtype=torch.bool, device=vectors.device)
    rows = torch.full((batch * width, size), -1, dtype=torch.long, device=vectors.device)
    query, column = pool.mask.nonzero().unbind(1)
    chunk, slot = pool.chunks[query, column], query * width + column
    items[slot, 0], filled[slot, 0] = passages[chunk], True
    if tables.has_nodes:
        owner, node = gather(tables.chunk_nodes, chunk)
        stored = tables.index.query_graph.vectors.vectors
        cosine = (stored[node] * vectors[query[owner]]).sum(1)
        order = torch.argsort(cosine, descending=True, stable=True)
        order = order[torch.argsort(owner[order], stable=True)]
        counts = torch.bincount(owner, minlength=len(chunk))
        place = torch.arange(len(order), device=order.device) - (counts.cumsum(0) - counts)[owner[order]]
        kept = order[place < size]
        at = (slot[owner[kept]], place[place < size])
        items[at], filled[at], rows[at] = stored[node[kept]], True, node[kept]
    shape = (batch, width, size)
    return items.view(*shape, -1), filled.view(shape), rows.view(shape)
