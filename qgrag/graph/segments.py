"""Operations on segments: entries of a flat tensor that belong to numbered groups, such as the chunks of each query.

Each stands here once, for a whole batch, on any device. Entries need not lie together unless an argument says so. Order
is the same everywhere: higher score first, and of equal scores the entry that comes first.
"""

from typing import Literal

import torch
from torch import Tensor

Reduction = Literal["sum", "mean", "max"]
Pooling = Literal["mean", "max", "sum", "top2"]


def reduce_segments(values: Tensor, group: Tensor, num_groups: int, reduction: Reduction, *, dim: int = 0) -> Tensor:
    """One value per group.

    Args:
        values: floating, of any shape, with ``M`` entries along ``dim``.
        group: int64 ``[M]``, in any order, below ``num_groups``.
        num_groups: number of groups ``G``.
        reduction: how the values of a group become one.
        dim: the dimension that is reduced, from 0.

    Returns:
        The shape of ``values`` with ``G`` in place of ``M``; 0 for a group without entries. O(size of ``values``).
    """
    along = [1] * values.dim()
    along[dim] = -1
    index = group.view(along).expand_as(values)
    out = values.new_zeros(*values.shape[:dim], num_groups, *values.shape[dim + 1 :])
    if reduction == "max":
        return out.scatter_reduce_(dim, index, values, "amax", include_self=False)
    out.scatter_add_(dim, index, values)
    if reduction == "sum":
        return out
    return out / torch.bincount(group, minlength=num_groups).clamp_(min=1).to(values.dtype).view(along)


def rank_within(group: Tensor, score: Tensor, num_groups: int) -> Tensor:
    """Rank of each entry among those of its group: 0 for the best score, of equal ones for the first.

    Args:
        group: int64 ``[M]``, in any order, below ``num_groups``.
        score: floating ``[M]``.
        num_groups: number of groups.

    Returns:
        int64 ``[M]``. O(M log M).
    """
    order = torch.argsort(score, descending=True, stable=True)
    order = order[torch.argsort(group[order], stable=True)]
    count = torch.bincount(group, minlength=num_groups)
    rank = torch.empty_like(group)
    rank[order] = torch.arange(len(order), device=group.device) - (count.cumsum(0) - count)[group[order]]
    return rank


def top_per_group(group: Tensor, score: Tensor, k: int) -> Tensor:
    """Positions of the ``k`` best entries of each group: groups ascending, best first.

    Args:
        group: int64 ``[M]``, any numbers in any order.
        score: floating ``[M]``; equal scores go by position.
        k: entries kept per group.

    Returns:
        int64 ``[P]``. O(M log M).
    """
    groups, owner = torch.unique(group, return_inverse=True)
    rank = rank_within(owner, score, len(groups))
    kept = (rank < k).nonzero()[:, 0]
    return kept[torch.argsort(owner[kept] * k + rank[kept])]


def first_of_each(key: Tensor) -> Tensor:
    """Positions of the first entry with each distinct key, keys ascending.

    Args:
        key: int64 ``[M]``, in any order.

    Returns:
        int64 ``[P]``, one position per distinct key. O(M log M).
    """
    order = torch.argsort(key, stable=True)
    ordered = key[order]
    first = torch.ones_like(ordered, dtype=torch.bool)
    torch.ne(ordered[1:], ordered[:-1], out=first[1:])
    return order[first]


def distinct_in_rows(row: Tensor, value: Tensor, num_values: int) -> Tensor:
    """Positions of the first entry of each distinct (row, value): rows ascending, within a row as they came.

    Args:
        row: int64 ``[M]``, in any order.
        value: int64 ``[M]``, below ``num_values``.
        num_values: number of values.

    Returns:
        int64 ``[P]``. O(M log M).
    """
    first = first_of_each(row_keys(row, value, num_values)).sort().values
    return first[torch.argsort(row[first], stable=True)]


def pool_pairs(
    query: Tensor, item: Tensor, score: Tensor, num_items: int, pooling: Pooling
) -> tuple[Tensor, Tensor, Tensor]:
    """One score per distinct (query, item).

    Args:
        query: int64 ``[M]``.
        item: int64 ``[M]``, below ``num_items``: chunks, nodes, whatever is ranked.
        score: floating ``[M]``.
        num_items: number of items.
        pooling: how the scores of one pair are joined; ``top2`` is the sum of the two best.

    Returns:
        query int64 ``[P]``, item int64 ``[P]`` and score ``[P]``, sorted by query, then item. O(M log M).
    """
    key, owner = torch.unique(query * num_items + item, return_inverse=True)
    if pooling == "top2":
        score = torch.where(rank_within(owner, score, len(key)) < 2, score, 0)
        pooling = "sum"
    return key // num_items, key % num_items, reduce_segments(score, owner, len(key), pooling)


def top_pairs(query: Tensor, item: Tensor, score: Tensor, num_queries: int, top_k: int) -> tuple[Tensor, Tensor]:
    """The best items of each query, as a padded table.

    Args:
        query: int64 ``[P]``, each (query, item) once.
        item: int64 ``[P]``.
        score: floating ``[P]``; equal scores go by item number.
        num_queries: number of queries ``B``.
        top_k: columns ``K``.

    Returns:
        items int64 ``[B, K]`` padded with -1, scores ``[B, K]`` padded with -inf. O(P log P).
    """
    by_item = torch.argsort(item, stable=True)
    row, item, score = query[by_item], item[by_item], score[by_item]
    rank = rank_within(row, score, num_queries)
    kept = rank < top_k
    items = torch.full((num_queries, top_k), -1, dtype=torch.long, device=score.device)
    scores = torch.full((num_queries, top_k), -torch.inf, dtype=score.dtype, device=score.device)
    items[row[kept], rank[kept]] = item[kept]
    scores[row[kept], rank[kept]] = score[kept]
    return items, scores


def order_by_score(row: Tensor, score: Tensor) -> Tensor:
    """Order by row, then falling score; equal ones stay as they stand. One int64 sort, O(M log M).

    ``row`` is int64 and less than 2^31, ``score`` float32.
    """
    bits = score.add(0.0).view(torch.int32).to(torch.int64)
    rising = bits ^ ((bits >> 31) & 0x7FFFFFFF)
    return torch.sort((row << 32) - rising, stable=True).indices


def best_of_rows(row: Tensor, item: Tensor, score: Tensor, k: int) -> Tensor:
    """Positions of the ``k`` best entries of each row: by row, falling score, rising item. O(M log M).

    Like :func:`top_per_group` for float32 scores and rows below 2^31, with ties by item in place of position, in one
    sort less: the kNN kernels call it for every block.
    """
    order = torch.argsort(item, stable=True)
    order = order[order_by_score(row[order], score[order])]
    row = row[order]
    first = torch.ones_like(row, dtype=torch.bool)
    first[k:] = row[k:] != row[:-k]
    return order[first]


def row_keys(batch: Tensor, nodes: Tensor, num_nodes: int) -> Tensor:
    """One int64 key for each (row, node): ``batch * N + nodes``."""
    return batch * num_nodes + nodes


def sorted_distinct(keys: Tensor) -> Tensor:
    """The distinct values of ``keys``, ascending. O(M log M)."""
    if keys.numel() == 0:
        return keys
    keys = torch.sort(keys).values
    first = torch.ones_like(keys, dtype=torch.bool)
    torch.ne(keys[1:], keys[:-1], out=first[1:])
    return keys[first]


def contains(sorted_keys: Tensor, keys: Tensor) -> Tensor:
    """For each of ``keys`` whether it is among ``sorted_keys``: bool ``[M]``. O(M log K)."""
    if sorted_keys.numel() == 0:
        return torch.zeros_like(keys, dtype=torch.bool)
    place = torch.searchsorted(sorted_keys, keys).clamp_(max=sorted_keys.numel() - 1)
    return sorted_keys[place] == keys
