"""Distinct (row, node) pairs of ragged batches, as single int64 keys."""

import torch
from torch import Tensor

from qgrag.graph.ragged import Ragged


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


def distinct_rows(rows: Ragged, num_nodes: int) -> Ragged:
    """Each row's distinct ids, ascending."""
    keys = sorted_distinct(row_keys(rows.batch(), rows.values, num_nodes))
    if num_nodes == 0:
        return rows
    return Ragged.from_batch(keys % num_nodes, keys // num_nodes, rows.num_rows)
