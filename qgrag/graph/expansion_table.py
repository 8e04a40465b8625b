"""Breadth-first expansion over a table of neighbours: a row of keys for each query, sorted row by row.

A key holds node and hop in one integer, int32 where they fit. Rows are padded at their end with a key that is higher
than all others, so a batch of queries stays one tensor from the first hop to the last.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from qgrag.graph.checks import check_index
from qgrag.graph.ragged import Ragged, counts_to_ptr, ragged_arange

CPU_KEYS = 2**15
"""Keys of a block on CPU: from there on torch wakes its threads for every operation, which takes longer than these."""


class _Layout(NamedTuple):
    """Bits of a key: the node above the hop while nodes are met, the hop above the node at the end."""

    node_bits: int
    hop_bits: int
    dtype: torch.dtype

    @property
    def end(self) -> int:
        """The key that pads rows."""
        return torch.iinfo(self.dtype).max

    def hop(self, key: Tensor) -> Tensor:
        """Hop of each key; more than the last hop for padding."""
        return key & ((1 << self.hop_bits) - 1)

    def turned(self, key: Tensor) -> Tensor:
        """Keys with the hop above the node."""
        turned = (self.hop(key) << self.node_bits) | (key >> self.hop_bits)
        return turned.masked_fill_(key == self.end, self.end)


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
    layout = _Layout(node_bits, hop_bits, torch.int32 if node_bits + hop_bits < 31 else torch.int64)
    width = int(seeds.counts().max()) if seeds.num_rows else 0
    reach = min(max(1, num_nodes), max(1, width) * (k + 1) ** hops)
    if table.device.type == "cpu":
        max_slots = min(max_slots, CPU_KEYS)
    block = max(1, max_slots // reach)
    nodes, hop, counts = [seeds.values[:0]], [seeds.values[:0]], [seeds.ptr[:0]]
    for start in range(0, seeds.num_rows, block):
        rows = seeds.rows(start, min(start + block, seeds.num_rows))
        met = _met(table, rows, hops, max_nodes, layout)
        real = met != layout.end
        counts.append(real.sum(1))
        kept = met[real].long()
        nodes.append(kept & ((1 << node_bits) - 1))
        hop.append(kept >> node_bits)
    return Ragged(torch.cat(nodes), counts_to_ptr(torch.cat(counts))), torch.cat(hop)


def _met(table: Tensor, seeds: Ragged, hops: int, max_nodes: int | None, layout: _Layout) -> Tensor:
    """Keys ``[B, W]`` of the nodes met by a block of queries, hop above node, sorted."""
    counts = seeds.counts()
    row, place = ragged_arange(counts)
    met = counts.new_full((seeds.num_rows, int(counts.max())), layout.end, dtype=layout.dtype)
    met[row, place] = (seeds.values << layout.hop_bits).to(layout.dtype)
    met = frontier = _distinct(met, layout)
    for hop in range(1, hops + 1):
        frontier = _sort_rows(frontier)
        frontier = frontier[:, : int((frontier != layout.end).sum(1).max())]
        if frontier.numel() == 0:
            break
        met = _distinct(torch.cat([met, _reached(table, frontier, hop, layout)], 1), layout)
        frontier = torch.where(layout.hop(met) == hop, met, layout.end)
        if max_nodes is not None:
            full = (met != layout.end).sum(1) >= max_nodes
            frontier.masked_fill_(full[:, None], layout.end)
    return _sort_rows(layout.turned(met))


def _reached(table: Tensor, frontier: Tensor, hop: int, layout: _Layout) -> Tensor:
    """Keys ``[B, W k]`` of the neighbours of ``frontier`` ``[B, W]``."""
    padding = frontier == layout.end
    node = (frontier >> layout.hop_bits).masked_fill_(padding, 0)
    reached = table.index_select(0, node.flatten())
    low, high = reached.aminmax() if reached.numel() else (0, 0)
    if high >= table.size(0):
        check_index("neighbours", reached.clamp(min=0), table.size(0))
    key = (reached.to(layout.dtype) << layout.hop_bits) | hop
    if low < 0:
        key.masked_fill_(reached < 0, layout.end)
    return key.view(*frontier.shape, table.size(1)).masked_fill_(padding[:, :, None], layout.end).flatten(1)


def _distinct(keys: Tensor, layout: _Layout) -> Tensor:
    """Rows sorted, and the lowest hop of each node kept; the others become padding where they stand."""
    keys = _sort_rows(keys)
    place = keys >> layout.hop_bits
    keys[:, 1:].masked_fill_(place[:, 1:] == place[:, :-1], layout.end)
    return keys


def _sort_rows(keys: Tensor) -> Tensor:
    """Sorts each row, on CPU in place with NumPy: torch's sort carries places along, at 20 times the time."""
    if keys.device.type == "cpu":
        keys.numpy().sort(axis=1)
        return keys
    return torch.sort(keys, dim=1).values
