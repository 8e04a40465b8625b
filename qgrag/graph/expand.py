"""Breadth-first expansion of ragged seed sets by h hops."""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from qgrag.graph.checks import check_index, check_positive, check_seeds
from qgrag.graph.csr import CSR
from qgrag.graph.ragged import Ragged, counts_to_ptr, pieces

HOP_BITS = 8
HOPS = (1 << HOP_BITS) - 1

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

    Level-synchronous breadth-first search; a level of all queries is one gather and one sort. Written here
    because ``torch_geometric.utils.k_hop_subgraph`` takes one seed set a call and allocates masks of the whole
    graph. With T slots met in all: O(T log T) time; memory is the answer and at most ``memory_mb`` more.

    Args:
        neighbours: int64 ``[N, k]``, the out-neighbours of each node, padded with -1; or a CSR.
        seeds: ``B`` rows of node ids; repeats count once, a row without seeds stays empty.
        hops: 0 to 255; 0 returns the seeds.
        scores: what the cap and the order go by within a hop: floating ``[N]`` or ``[B, N]``, or a function of
            (query id ``[M]``, node id ``[M]``) that returns ``[M]``. Without it the lower id goes first.
        max_nodes: keep the best so many of a query, seeds among them.
        memory_mb: bound of the frontier gathered at once, in MiB; a hub's edges pass through in pieces.

    Raises:
        ValueError: for a seed or neighbour out of range, negative ``hops``, ``max_nodes`` below 1, or scores whose
            shape does not fit.

    Example:
        >>> table = torch.tensor([[1], [2], [3], [-1]])
        >>> found = expand(table, Ragged.from_lists([[0], [2, 3]]), hops=2)
        >>> found.nodes.to_lists(), found.hop.tolist()
        ([[0, 1, 2], [2, 3]], [0, 1, 2, 0, 0])
    """
    num_nodes = neighbours.num_nodes if isinstance(neighbours, CSR) else neighbours.size(0)
    check_seeds(seeds, num_nodes, neighbours.device)
    check_positive("hops", hops, 0)
    if hops > HOPS:
        raise ValueError(f"hops must be at most {HOPS}; got {hops}")
    check_positive("memory_mb", memory_mb)
    if max_nodes is not None:
        check_positive("max_nodes", max_nodes)
    if isinstance(neighbours, Tensor) and neighbours.dim() != 2:
        raise ValueError(f"neighbours must be [N, k]; got shape {tuple(neighbours.shape)}")
    if isinstance(scores, Tensor) and scores.shape not in ((num_nodes,), (seeds.num_rows, num_nodes)):
        raise ValueError(
            f"scores must be [{num_nodes}] or [{seeds.num_rows}, {num_nodes}]; got shape {tuple(scores.shape)}"
        )
    max_slots = max(1, memory_mb * 2**20 // 64)
    key = _Key(max(1, num_nodes - 1).bit_length())
    met = _first_met(key.pack(seeds.batch(), seeds.values))
    for hop in range(hops):
        frontier = met[(met & HOPS) == hop] if hop else met
        if max_nodes is not None:
            below = torch.bincount(key.batch(met), minlength=seeds.num_rows) < max_nodes
            frontier = frontier[below[key.batch(frontier)]]
        if frontier.numel() == 0:
            break
        reached = _neighbours(neighbours, key, frontier, max_slots)
        met = _first_met(torch.cat([met, *(part + (hop + 1) for part in reached)]))
    if scores is None:
        return _by_id(met, key, seeds.num_rows, max_nodes)
    return _by_score(met, key, seeds.num_rows, scores, max_nodes)


class _Key(NamedTuple):
    """Query, node and hop in one int64, in this order of significance; ``node_bits`` hold a node."""

    node_bits: int

    def pack(self, batch: Tensor, node: Tensor) -> Tensor:
        """Keys of hop 0."""
        return (batch << (self.node_bits + HOP_BITS)) + (node << HOP_BITS)

    def batch(self, key: Tensor) -> Tensor:
        """Query of each key."""
        return key >> (self.node_bits + HOP_BITS)

    def node(self, key: Tensor) -> Tensor:
        """Node of each key."""
        return (key >> HOP_BITS) & ((1 << self.node_bits) - 1)


def _first_met(key: Tensor) -> Tensor:
    """Sorts, and keeps the lowest hop of each query and node."""
    key = torch.sort(key).values
    place = key >> HOP_BITS
    first = torch.ones_like(key, dtype=torch.bool)
    torch.ne(place[1:], place[:-1], out=first[1:])
    return key.index_select(0, first.nonzero().squeeze(1))


def _neighbours(neighbours: Tensor | CSR, key: _Key, frontier: Tensor, max_slots: int) -> list[Tensor]:
    """Keys of hop 0 one step from ``frontier``; more than one piece is made distinct piece by piece."""
    nodes = key.node(frontier)
    own = key.pack(key.batch(frontier), torch.zeros_like(frontier))
    parts = []
    if isinstance(neighbours, Tensor):
        for rows, base in zip(*(x.split(max(1, max_slots // max(1, neighbours.size(1)))) for x in (nodes, own))):
            reached = neighbours.index_select(0, rows)
            check_index("neighbours", reached.clamp(min=0), neighbours.size(0))
            found = ((reached << HOP_BITS) + base[:, None]).flatten()
            real = (reached.flatten() >= 0).nonzero().squeeze(1)
            parts.append(found if real.numel() == found.numel() else found.index_select(0, real))
    else:
        for start, stop in pieces(neighbours.rowptr[nodes + 1] - neighbours.rowptr[nodes], max_slots):
            owner, slot = neighbours.slots(nodes[start:stop])
            parts.append((neighbours.col.index_select(0, slot) << HOP_BITS) + own[start:stop].index_select(0, owner))
    return parts if len(parts) == 1 else [_first_met(part) for part in parts]


def _by_id(met: Tensor, key: _Key, num_rows: int, max_nodes: int | None) -> Expansion:
    """Orders each row by hop, then id: every hop's nodes are moved to their place, no sort."""
    hop = met & HOPS
    counts = torch.bincount(key.batch(met), minlength=num_rows)
    start = counts_to_ptr(counts)[:-1]
    order = torch.empty_like(met)
    for level in range(int(hop.max()) + 1 if met.numel() else 0):
        place = (hop == level).nonzero().squeeze(1)
        batch = key.batch(met.index_select(0, place))
        count = torch.bincount(batch, minlength=num_rows)
        shift = start - (torch.cumsum(count, 0) - count)
        order[torch.arange(place.numel(), device=place.device) + shift.index_select(0, batch)] = place
        start = start + count
    return _cut(met.index_select(0, order), key, num_rows, max_nodes)


def _by_score(met: Tensor, key: _Key, num_rows: int, scores: NodeScores, max_nodes: int | None) -> Expansion:
    """Orders each row by hop, then score, then id."""
    batch, node = key.batch(met), key.node(met)
    value = scores(batch, node) if callable(scores) else scores[node] if scores.dim() == 1 else scores[batch, node]
    order = torch.argsort(value, descending=True, stable=True)
    order = order[torch.argsort((batch << HOP_BITS)[order] + (met & HOPS)[order], stable=True)]
    return _cut(met[order], key, num_rows, max_nodes)


def _cut(met: Tensor, key: _Key, num_rows: int, max_nodes: int | None) -> Expansion:
    """Unpacks keys that stand in their final order, the first ``max_nodes`` of each row."""
    batch = key.batch(met)
    if max_nodes is not None:
        counts = torch.bincount(batch, minlength=num_rows)
        first = counts_to_ptr(counts).index_select(0, batch)
        kept = (torch.arange(met.numel(), device=met.device) - first < max_nodes).nonzero().squeeze(1)
        met, batch = met.index_select(0, kept), batch.index_select(0, kept)
    return Expansion(Ragged.from_batch(key.node(met), batch, num_rows), met & HOPS)
