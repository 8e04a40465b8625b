"""Orders and cuts of ragged score lists: higher score first, then lower id."""

import torch
from torch import Tensor


def order_by_score(row: Tensor, score: Tensor) -> Tensor:
    """Order by row, then falling score; equal ones stay as they stand. One int64 sort, O(M log M).

    ``row`` is int64 and less than 2^31, ``score`` float32.
    """
    bits = score.add(0.0).view(torch.int32).to(torch.int64)
    rising = bits ^ ((bits >> 31) & 0x7FFFFFFF)
    return torch.sort((row << 32) - rising, stable=True).indices


def best_of_rows(row: Tensor, item: Tensor, score: Tensor, k: int) -> Tensor:
    """Places of the ``k`` best entries of each row: by row, falling score, rising item. O(M log M)."""
    order = torch.argsort(item, stable=True)
    order = order[order_by_score(row[order], score[order])]
    row = row[order]
    first = torch.ones_like(row, dtype=torch.bool)
    first[k:] = row[k:] != row[:-k]
    return order[first]


def rank_within(group: Tensor, score: Tensor, num_groups: int) -> Tensor:
    """Rank of each entry among those of its group, int64 ``[M]``: 0 for the best score, of equal ones for the first.

    ``group`` is int64 ``[M]``, in any order, below ``num_groups``. O(M log M).
    """
    order = torch.argsort(score, descending=True, stable=True)
    order = order[torch.argsort(group[order], stable=True)]
    count = torch.bincount(group, minlength=num_groups)
    rank = torch.empty_like(group)
    rank[order] = torch.arange(len(order), device=group.device) - (count.cumsum(0) - count)[group[order]]
    return rank
