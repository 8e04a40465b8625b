"""Breadth-first expansion over a table of neighbours: a row of keys for each query, sorted row by row.

A key holds node and hop in one integer, int32 where they fit. Rows are padded at their end with the key of all ones,
so a batch of queries stays one tensor from the first hop to the last.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from qgrag.graph.ragged import Ragged, counts_to_ptr

CPU_KEYS = 2**16
"""Keys of a block on CPU, which fit its cache."""


class _Layout(NamedTuple):
    """Bits of a key: the node above the hop while nodes are met, the hop above the node at the end."""

    node_bits: int
    hop_bits: int
    dtype: torch.dtype

    @property
    def end(self) -> int:
        """The key that pads rows; its hop is one that no node has."""
        return (1 << (self.node_bits + self.hop_bits)) - 1

    def hop(self, key: Tensor) -> Tensor:
        """Hop of each key."""
        return key & ((1 << self.hop_bits) - 1)

    def turned(self, key: Tensor) -> Tensor:
        """Keys with the hop above the node."""
        return self.hop(key).bitwise_left_shift_(self.node_bits).bitwise_or_(key >> self.hop_bits)


def expand_table(
    table: Tensor, seeds: Ragged, hops: int, max_nodes: int | None, max_slots: int
) -> tuple[Ragged, Tensor]:
    """Nodes met by each query and the hop of each, ordered by hop, then id.

    Args:
        table: int64 ``[N, k]``, padded with negative ids.
        seeds: ``B`` rows of node ids below N.
        hops: at least 0.
        max_nodes: a query that has met so many goes no further; its nodes are not cut.
        max_slots: keys of a block of queries, about; one query at least.

    Raises:
        ValueError: for a neighbour of N or more.
    """
    num_nodes, k = table.shape
    node_bits, hop_bits = max(1, num_nodes - 1).bit_length(), (hops + 1).bit_length()
    layout = _Layout(node_bits, hop_bits, torch.int32 if node_bits + hop_bits < 32 else torch.int64)
    counts = seeds.counts()
    asked = counts > 0
    rows = Ragged(seeds.values, torch.cat([seeds.ptr[:1], seeds.ptr[1:][asked]]))
    width = int(counts.max()) if rows.num_rows else 0
    if table.device.type == "cpu":
        max_slots = min(max_slots, CPU_KEYS)
    block = max(1, max_slots // min(max(1, num_nodes), max(1, width) * (k + 1) ** hops))
    met, found = [seeds.values[:0].to(layout.dtype)], [counts[:0]]
    for start in range(0, rows.num_rows, block):
        keys = _met(table, rows.rows(start, min(start + block, rows.num_rows)), hops, max_nodes, layout)
        found.append(_lengths(keys, layout))
        met.append(keys.flatten().index_select(0, _places(found[-1], keys.size(1))))
    counts[asked] = torch.cat(found)
    key = torch.cat(met)
    return Ragged((key & ((1 << node_bits) - 1)).long(), counts_to_ptr(counts)), (key >> node_bits).long()


def _met(table: Tensor, seeds: Ragged, hops: int, max_nodes: int | None, layout: _Layout) -> Tensor:
    """Keys ``[B, W]`` of the nodes met by a block of queries that all have seeds, hop above node, sorted."""
    counts = seeds.counts()
    place = torch.arange(int(counts.max()), device=counts.device)
    place = torch.minimum(place, counts[:, None] - 1).add_(seeds.ptr[:-1, None])
    met = _distinct((seeds.values[place] << layout.hop_bits).to(layout.dtype), layout)
    first, frontier = met[:, :1].clone(), met
    for hop in range(1, hops + 1):
        frontier = _sort_rows(frontier)
        frontier = frontier[:, : int(_lengths(frontier, layout).max())]
        if frontier.numel() == 0:
            break
        met = _distinct(torch.cat([met, _reached(table, frontier, first, hop, layout)], 1), layout)
        if hop < hops:
            frontier = met.masked_fill(layout.hop(met) != hop, layout.end)
            if max_nodes is not None:
                full = (met != layout.end).sum(1) >= max_nodes
                frontier.masked_fill_(full[:, None], layout.end)
    return _sort_rows(layout.turned(met))


def _reached(table: Tensor, frontier: Tensor, first: Tensor, hop: int, layout: _Layout) -> Tensor:
    """Keys ``[B, W k]`` of the neighbours of ``frontier`` ``[B, W]``.

    The row's first seed stands in for padding: all its neighbours are met already, or by this very hop.
    """
    node = torch.where(frontier == layout.end, first, frontier) >> layout.hop_bits
    reached = table.index_select(0, node.flatten())
    low, high = reached.aminmax() if reached.numel() else (0, 0)
    if high >= table.size(0):
        place, slot = (int(part) for part in (reached >= table.size(0)).nonzero()[0])
        raise ValueError(
            f"neighbours holds {int(reached[place, slot])} for node {int(node.flatten()[place])}; "
            f"ids must be less than {table.size(0)}"
        )
    key = reached.to(layout.dtype).bitwise_left_shift_(layout.hop_bits).bitwise_or_(hop)
    if low < 0:
        key.masked_fill_(reached < 0, layout.end)
    return key.view(frontier.size(0), -1 if key.numel() else 0)


def _distinct(keys: Tensor, layout: _Layout) -> Tensor:
    """Rows sorted, and the lowest hop of each node kept; the others become padding where they stand."""
    keys = _sort_rows(keys)
    node = keys >> layout.hop_bits
    step = torch.ones_like(node)
    torch.sub(node.flatten()[1:], node.flatten()[:-1], out=step.view(-1)[1:])
    step[:, :1] = 1
    all_ones_where_0 = step.sub_(1).bitwise_right_shift_(8 * keys.itemsize - 1)
    return keys.bitwise_or_(all_ones_where_0.bitwise_and_(layout.end))


def _lengths(keys: Tensor, layout: _Layout) -> Tensor:
    """Keys of each sorted row before its padding, int64 ``[B]``."""
    end = torch.full((keys.size(0), 1), layout.end, dtype=layout.dtype, device=keys.device)
    return torch.searchsorted(keys, end).squeeze(1)


def _places(counts: Tensor, width: int) -> Tensor:
    """Places of the first ``counts`` keys of each row among rows of ``width``."""
    shift = torch.arange(0, counts.numel() * width, width, device=counts.device) - (counts.cumsum(0) - counts)
    shift = torch.repeat_interleave(shift, counts)
    return torch.arange(shift.numel(), device=counts.device).add_(shift)


def _sort_rows(keys: Tensor) -> Tensor:
    """Sorts each row, on CPU in place with NumPy: torch's sort carries places along, at 20 times the time."""
    if keys.device.type == "cpu":
        keys.numpy().sort(axis=1)
        return keys
    return torch.sort(keys, dim=1).values
