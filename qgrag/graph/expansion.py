"""Breadth-first expansion of ragged seed sets by h hops."""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from qgrag.graph.checks import check_positive, check_seeds
from qgrag.graph.csr import CSR
from qgrag.graph.expansion_table import expand_table
from qgrag.graph.ragged import Ragged, counts_to_ptr, pieces, ragged_arange

NodeScores = Tensor | Callable[[Tensor, Tensor], Tensor]


class Expansion(NamedTuple):
    """The nodes met by each query, ordered by hop, then score (higher first), then id.

    Attributes:
        nodes: ``B`` rows of distinct node ids.
        hop: int64 ``[M]``, the hop at which each of ``nodes.values`` was first met; seeds have 0.
    """

    nodes: Ragged
    hop: Tensor


def expand(
    neighbours: Tensor | CSR,
    seeds: Ragged,
    hops: int,
    *,
    scores: NodeScores | None = None,
    max_nodes: int | None = None,
    memory_mb: int = 512,
) -> Expansion:
    """Every node within ``hops`` hops of each query's seeds, with the hop at which it was first met.

    Level-synchronous breadth-first search; a level of a block of queries is one gather and one sort. Written here
    because ``torch_geometric.utils.k_hop_subgraph`` takes one seed set a call and allocates masks of the whole
    graph. With T slots met in all: O(T log T) time; memory is the answer and at most ``memory_mb`` more.

    Args:
        neighbours: int64 ``[N, k]``, the out-neighbours of each node, padded with -1; or a CSR.
        seeds: ``B`` rows of node ids; repeats count once, a row without seeds stays empty.
        hops: at least 0; 0 returns the seeds.
        scores: what the cap and the order go by within a hop: floating ``[N]`` or ``[B, N]``, or a function of
            (query id ``[M]``, node id ``[M]``) that returns ``[M]``. Without it the lower id goes first.
        max_nodes: keep the best so many of a query, seeds among them.
        memory_mb: bound of the frontier gathered at once, in MiB; a hub's edges pass through in pieces.

    Raises:
        ValueError: for a seed or neighbour out of range, negative ``hops``, ``max_nodes`` below 1, or scores whose
            shape does not fit or that hold NaN for a node met.

    Example:
        >>> table = torch.tensor([[1], [2], [3], [-1]])
        >>> found = expand(table, Ragged.from_lists([[0], [2, 3]]), hops=2)
        >>> found.nodes.to_lists(), found.hop.tolist()
        ([[0, 1, 2], [2, 3]], [0, 1, 2, 0, 0])
    """
    if isinstance(neighbours, Tensor) and (neighbours.dim() != 2 or neighbours.dtype not in (torch.int32, torch.int64)):
        raise ValueError(
            f"neighbours must be an integer [N, k]; got shape {tuple(neighbours.shape)}, dtype {neighbours.dtype}"
        )
    num_nodes = neighbours.num_nodes if isinstance(neighbours, CSR) else neighbours.size(0)
    check_seeds("seeds", seeds, num_nodes, neighbours.device)
    check_positive("hops", hops, 0)
    check_positive("memory_mb", memory_mb)
    if max_nodes is not None:
        check_positive("max_nodes", max_nodes)
    if isinstance(scores, Tensor) and scores.shape not in ((num_nodes,), (seeds.num_rows, num_nodes)):
        raise ValueError(
            f"scores must be [{num_nodes}] or [{seeds.num_rows}, {num_nodes}]; got shape {tuple(scores.shape)}"
        )
    max_slots = max(1, memory_mb * 2**20 // 64)
    if isinstance(neighbours, CSR):
        found = Expansion(*_expand_csr(neighbours, seeds, hops, max_nodes, max_slots))
    else:
        found = Expansion(*expand_table(neighbours, seeds, hops, max_nodes, max_slots))
    if scores is not None:
        found = _by_score(found, scores)
    return found if max_nodes is None else _cut(found, max_nodes)


def _by_score(found: Expansion, scores: NodeScores) -> Expansion:
    """The nodes of each row by hop, then score, then id."""
    batch, node = found.nodes.batch(), found.nodes.values
    value = scores(batch, node) if callable(scores) else scores[node] if scores.dim() == 1 else scores[batch, node]
    if bool(value.isnan().any()):
        place = int(value.isnan().nonzero()[0])
        raise ValueError(f"scores holds NaN for node {int(node[place])} of query {int(batch[place])}")
    order = torch.argsort(value, descending=True, stable=True)
    level = batch * (int(found.hop.max()) + 1 if found.hop.numel() else 1) + found.hop
    order = order[torch.argsort(level[order], stable=True)]
    return Expansion(Ragged(node[order], found.nodes.ptr), found.hop[order])


def _cut(found: Expansion, max_nodes: int) -> Expansion:
    """The first ``max_nodes`` of each row."""
    counts = found.nodes.counts()
    _, place = ragged_arange(counts)
    kept = place < max_nodes
    return Expansion(Ragged(found.nodes.values[kept], counts_to_ptr(counts.clamp(max=max_nodes))), found.hop[kept])


def _expand_csr(csr: CSR, seeds: Ragged, hops: int, max_nodes: int | None, max_slots: int) -> tuple[Ragged, Tensor]:
    """Nodes met by each query and the hop of each, ordered by hop, then id; one sort a level for all queries."""
    key = _Key.fit(seeds.num_rows, csr.num_nodes, hops)
    met = _first_met(key.pack(seeds.batch(), seeds.values), key)
    levels = [met]
    for hop in range(hops):
        frontier = levels[-1]
        if max_nodes is not None:
            below = torch.bincount(key.batch(met), minlength=seeds.num_rows) < max_nodes
            frontier = frontier[below[key.batch(frontier)]]
        if frontier.numel() == 0:
            break
        reached = _neighbours(csr, key, frontier, max_slots)
        met = _first_met(torch.cat([met, *(part + (hop + 1) for part in reached)]), key)
        levels.append(met.index_select(0, (key.hop(met) == hop + 1).nonzero().squeeze(1)))
    ordered = _by_id(levels, key, seeds.num_rows)
    counts = torch.bincount(key.batch(ordered), minlength=seeds.num_rows)
    return Ragged(key.node(ordered).long(), counts_to_ptr(counts)), key.hop(ordered).long()


class _Key(NamedTuple):
    """Query, node and hop in one integer, in this order of significance; int32 where they fit, to sort faster."""

    node_bits: int
    hop_bits: int
    dtype: torch.dtype

    @classmethod
    def fit(cls, num_rows: int, num_nodes: int, hops: int) -> "_Key":
        """The narrowest layout."""
        node_bits, hop_bits = max(1, num_nodes - 1).bit_length(), (hops + 1).bit_length()
        bits = node_bits + hop_bits + max(1, num_rows).bit_length()
        return cls(node_bits, hop_bits, torch.int32 if bits < 32 else torch.int64)

    def pack(self, batch: Tensor, node: Tensor) -> Tensor:
        """Keys of hop 0."""
        return ((batch << (self.node_bits + self.hop_bits)) + (node << self.hop_bits)).to(self.dtype)

    def batch(self, key: Tensor) -> Tensor:
        """Query of each key."""
        return key >> (self.node_bits + self.hop_bits)

    def node(self, key: Tensor) -> Tensor:
        """Node of each key."""
        return (key >> self.hop_bits) & ((1 << self.node_bits) - 1)

    def hop(self, key: Tensor) -> Tensor:
        """Hop of each key."""
        return key & ((1 << self.hop_bits) - 1)

    def row_starts(self, key: Tensor, num_rows: int) -> Tensor:
        """Where each query's keys start among sorted ones, int64 ``[B + 1]``."""
        rows = torch.arange(num_rows + 1, device=key.device) << (self.node_bits + self.hop_bits)
        return torch.searchsorted(key, rows.to(self.dtype))


def _first_met(keys: Tensor, key: _Key) -> Tensor:
    """Sorts, and keeps the lowest hop of each query and node."""
    keys = torch.sort(keys).values
    place = keys >> key.hop_bits
    first = torch.ones_like(keys, dtype=torch.bool)
    torch.ne(place[1:], place[:-1], out=first[1:])
    return keys.index_select(0, first.nonzero().squeeze(1))


def _neighbours(csr: CSR, key: _Key, frontier: Tensor, max_slots: int) -> list[Tensor]:
    """Keys of hop 0 one step from ``frontier``; more than one piece is made distinct piece by piece."""
    nodes = key.node(frontier)
    own = frontier - (nodes << key.hop_bits) - key.hop(frontier)
    parts = []
    for start, stop in pieces(csr.rowptr[nodes + 1] - csr.rowptr[nodes], max_slots):
        owner, slot = csr.slots(nodes[start:stop])
        reached = csr.col.index_select(0, slot).to(key.dtype)
        parts.append((reached << key.hop_bits) + own[start:stop].index_select(0, owner))
    return parts if len(parts) == 1 else [_first_met(part, key) for part in parts]


def _by_id(levels: list[Tensor], key: _Key, num_rows: int) -> Tensor:
    """Keys of each row by hop, then id: the sorted levels are dealt to their rows, no sort."""
    starts = [key.row_starts(level, num_rows) for level in levels]
    at = torch.stack(starts).sum(0)[:-1]
    ordered = levels[0].new_empty(sum(level.numel() for level in levels))
    for level, start in zip(levels, starts, strict=True):
        counts = start.diff()
        place = torch.repeat_interleave(at - start[:-1], counts, output_size=level.numel())
        ordered.scatter_(0, place.add_(torch.arange(level.numel(), device=level.device)), level)
        at = at + counts
    return ordered
