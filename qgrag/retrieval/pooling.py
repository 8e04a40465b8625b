"""Scores of (query, chunk) pairs: pooled where a pair occurs several times, and ranked within each query."""

from typing import Literal

import torch
from torch import Tensor
from torch_geometric.utils import scatter

from qgrag.graph.top import rank_within

Pooling = Literal["mean", "max", "sum", "top2"]


def pool_pairs(
    query: Tensor, chunk: Tensor, score: Tensor, num_chunks: int, pooling: Pooling
) -> tuple[Tensor, Tensor, Tensor]:
    """One score for each distinct (query, chunk).

    Args:
        query: int64 [M].
        chunk: int64 [M], below `num_chunks`.
        score: float [M].
        num_chunks: number of chunks of the index.
        pooling: how the scores of one pair are joined; `top2` is the sum of the two best.

    Returns:
        query int64 [P], chunk int64 [P] and score [P], sorted by query, then chunk. O(M log M).
    """
    key, owner = torch.unique(query * num_chunks + chunk, return_inverse=True)
    if pooling == "top2":
        score = torch.where(rank_within(owner, score, len(key)) < 2, score, 0)
        pooling = "sum"
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
    by_chunk = torch.argsort(chunk, stable=True)
    row, chunk, score = query[by_chunk], chunk[by_chunk], score[by_chunk]
    rank = rank_within(row, score, num_queries)
    kept = rank < top_k
    chunks = torch.full((num_queries, top_k), -1, dtype=torch.long, device=score.device)
    scores = torch.full((num_queries, top_k), -torch.inf, dtype=score.dtype, device=score.device)
    chunks[row[kept], rank[kept]] = chunk[kept]
    scores[row[kept], rank[kept]] = score[kept]
    return chunks, scores
