"""Scores of (query, chunk) pairs: pooled where a pair occurs several times, and ranked within each query."""

from typing import Literal

import torch
from torch import Tensor
from torch_geometric.utils import scatter

Pooling = Literal["mean", "max", "sum"]


def pool_pairs(
    query: Tensor, chunk: Tensor, score: Tensor, num_chunks: int, pooling: Pooling
) -> tuple[Tensor, Tensor, Tensor]:
    """One score for each distinct (query, chunk).

    Args:
        query: int64 [M].
        chunk: int64 [M], below `num_chunks`.
        score: float [M].
        num_chunks: number of chunks of the index.
        pooling: how the scores of one pair are joined.

    Returns:
        query int64 [P], chunk int64 [P] and score [P], sorted by query, then chunk. O(M log M).
    """
    key, owner = torch.unique(query * num_chunks + chunk, return_inverse=True)
    pooled = scatter(score, owner, dim_size=len(key), reduce=pooling)
    return key // num_chunks, key % num_chunks, pooled


def top_pairs(query: Tensor, chunk: Tensor, score: Tensor, num_queries: int, top_k: int) -> tuple[Tensor, Tensor]:
    """The best chunks of each query, as a padded table.

    Args:
        query: int64 [P], each (query, chunk) once.
        chunk: int64 [P].
        score: float [P]; equal scores go by chunk number.
        num_queries: B.
        top_k: K.

    Returns:
        chunks int64 [B, K] padded with -1, scores float [B, K] padded with -inf. O(P log P).
    """
    order = torch.argsort(chunk, stable=True)
    order = order[torch.argsort(score[order], descending=True, stable=True)]
    order = order[torch.argsort(query[order], stable=True)]
    count = torch.bincount(query, minlength=num_queries)
    row = query[order]
    rank = torch.arange(len(order), device=order.device) - (count.cumsum(0) - count)[row]
    kept = rank < top_k
    chunks = torch.full((num_queries, top_k), -1, dtype=torch.long, device=order.device)
    scores = torch.full((num_queries, top_k), -torch.inf, dtype=score.dtype, device=order.device)
    chunks[row[kept], rank[kept]] = chunk[order][kept]
    scores[row[kept], rank[kept]] = score[order][kept]
    return chunks, scores
