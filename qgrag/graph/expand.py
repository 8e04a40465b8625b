"""Breadth-first expansion of ragged seed sets by h hops."""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from qgrag.graph.checks import check_index, check_positive, check_seeds
from qgrag.graph.csr import CSR
from qgrag.graph.ragged import Ragged
from qgrag.graph.unique import contains, row_keys, sorted_distinct

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
        hops: at least 0; 0 returns the seeds.
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
    check_positive("memory_mb", memory_mb)
    if max_nodes is not None:
        check_positive("max_nodes", max_nodes)
    if isinstance(neighbours, Tensor):
        if neighbours.dim() != 2:
            raise ValueError(f"neighbours must be [N, k]; got shape {tuple(neighbours.shape)}")
    if isinstance(scores, Tensor) and scores.shape not in ((num_nodes,), (seeds.num_rows, num_nodes)):
        raise ValueError(
            f"scores must be [{num_nodes}] or [{seeds.num_rows}, {num_nodes}]; got shape {tuple(scores.shape)}"
        )
    max_slots = max(1, memory_mb * 2**20 // 64)

    frontier = sorted_distinct(row_keys(seeds.batch(), seeds.values, num_nodes))
    seen, levels = frontier, [frontier]
    for hop in range(hops):
        if max_nodes is not None:
            frontier = frontier[_below_cap(seen // num_nodes, seeds.num_rows, max_nodes)[frontier // num_nodes]]
        if frontier.numel() == 0:
            break
        frontier = _next_level(neighbours, frontier, num_nodes, max_slots)
        frontier = frontier[~contains(seen, frontier)]
        levels.append(frontier)
        if hop + 1 < hops:
            seen = torch.sort(torch.cat([seen, frontier])).values
    return _order(levels, seeds.num_rows, num_nodes, scores, max_nodes)


def _below_cap(batch: Tensor, num_rows: int, max_nodes: int) -> Tensor:
    return torch.bincount(batch, minlength=num_rows) < max_nodes


def _next_level(neighbours: Tensor | CSR, frontier: Tensor, num_nodes: int, max_slots: int) -> Tensor:
    """Distinct keys one step from ``frontier``, gathered in pieces of about ``max_slots`` slots."""
    nodes = frontier % num_nodes
    offset = frontier - nodes
    if isinstance(neighbours, Tensor):
        piece = max(1, max_slots // max(1, neighbours.size(1)))
        parts = []
        for start in range(0, nodes.numel(), piece):
            reached = neighbours[nodes[start : start + piece]]
            check_index("neighbours", reached.clamp(min=0), num_nodes)
            keys = (reached + offset[start : start + piece, None]).flatten()
            parts.append(sorted_distinct(keys[reached.flatten() >= 0]))
    else:
        parts = []
        for start, stop in pieces(neighbours.rowptr[nodes + 1] - neighbours.rowptr[nodes], max_slots):
            owner, slot = neighbours.slots(nodes[start:stop])
            parts.append(sorted_distinct(neighbours.col[slot] + offset[start:stop][owner]))
    return parts[0] if len(parts) == 1 else sorted_distinct(torch.cat(parts))


def pieces(counts: Tensor, budget: int) -> list[tuple[int, int]]:
    """Cuts ``[0, len(counts))`` into ranges whose counts sum to about ``budget``; one item may exceed it alone."""
    total = torch.cumsum(counts, 0)
    if counts.numel() == 0 or int(total[-1]) <= budget:
        return [(0, counts.numel())]
    part = (total - counts) // budget
    ends = torch.cat([(part.diff() > 0).nonzero().squeeze(1) + 1, part.new_tensor([counts.numel()])]).tolist()
    return list(zip([0, *ends[:-1]], ends, strict=True))


def _order(
    levels: list[Tensor], num_rows: int, num_nodes: int, scores: NodeScores | None, max_nodes: int | None
) -> Expansion:
    keys = torch.cat(levels)
    hop = torch.repeat_interleave(torch.tensor([level.numel() for level in levels], device=keys.device))
    batch, node = (keys // num_nodes, keys % num_nodes) if num_nodes else (keys, keys)
    if scores is not None:
        value = scores(batch, node) if callable(scores) else scores[node] if scores.dim() == 1 else scores[batch, node]
        order = torch.argsort(value, descending=True, stable=True)
        order = order[torch.argsort(hop[order], stable=True)]
        batch, node, hop = batch[order], node[order], hop[order]
    order = torch.argsort(batch, stable=True)
    nodes, hop = Ragged.from_batch(node[order], batch[order], num_rows), hop[order]
    if max_nodes is None:
        return Expansion(nodes, hop)
    batch = nodes.batch()
    kept = torch.arange(hop.numel(), device=hop.device) - nodes.ptr[batch] < max_nodes
    return Expansion(Ragged.from_batch(nodes.values[kept], batch[kept], num_rows), hop[kept])
