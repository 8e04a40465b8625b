"""Personalised PageRank around the seeds only: forward push over a sparse frontier."""

from queue import SimpleQueue
from typing import NamedTuple

import torch
from torch import Tensor

from qgrag.graph.blocks import concurrent_blocks, run_blocks
from qgrag.graph.checks import check_positive
from qgrag.graph.csr import CSR
from qgrag.graph.ppr import check_damping, check_restart, restart_mass
from qgrag.graph.ragged import Ragged, counts_to_ptr, pieces
from qgrag.graph.random_walk import Walk, walk
from qgrag.graph.segments import order_by_score, row_keys

CACHE_BYTES = 2**25
"""Bytes of residuals of all blocks in hand on CPU; more fall out of the cache."""


class LocalPageRank(NamedTuple):
    """Scores of the nodes that pushed or hold more than a node of mean degree pushes at, ascending within a query.

    Attributes:
        nodes: ``B`` rows of node ids.
        scores: floating ``[M]``, one for each of ``nodes.values``.
        bound: floating ``[B]``, what the scores differ from the exact ones of all nodes by at most, in L1.
    """

    nodes: Ragged
    scores: Tensor
    bound: Tensor


def local_pagerank(
    graph: CSR | Walk,
    seeds: Ragged,
    weights: Tensor | None = None,
    *,
    damping: float = 0.85,
    epsilon: float = 1.2e-5,
    max_iter: int = 100,
    refine: int = 32,
    dtype: torch.dtype = torch.float32,
    memory_mb: int = 512,
) -> LocalPageRank:
    """Scores around the seeds, at a cost that grows with the neighbourhood and not with the graph.

    Forward push (Andersen, Chung and Lang 2006), all frontiers of a block of queries at once. Residual mass r
    starts at the restart distribution; a node u with r(u) > epsilon degree(u) keeps (1 - d) r(u) as score and
    passes d r(u) on along its out-weights (a node without out-weight passes it to the restart distribution). At
    the end a node keeps (1 - d) of what it still holds. These scores are never above the exact ones and miss
    R = 1 - their sum, known for each query. On an undirected graph two things let a coarse epsilon still rank hubs
    well: the ``refine`` best nodes take in what their neighbours hold, exactly, and the mass still on its way after
    that is shared out by weight, which is where a long walk is found. For the same reason a node of such a graph
    pushes only what it holds over its even share of the mass on its way, the least of a block's queries: within
    ``bound``, scores depend on what else is asked in the batch. Both steps are our own.

    Written here because ``torch_geometric.utils.get_ppr``, the same push for one seed at a time, takes neither
    weights nor restart distributions, runs on CPU only and says nothing of what it leaves out.

    Error: the L1 distance to the exact scores, nodes that are not returned included, is at most ``bound``: R on a
    directed graph, on an undirected one R and what was shared out. Time: at most 1 / ((1 - d) epsilon) slots a
    query, since each push of u places (1 - d) epsilon degree(u) or more, and those of the refined nodes.

    Args:
        graph: the graph, walked along its slots; a ``Walk`` made once spares O(S) work in each call.
        seeds: ``B`` rows of node ids; a row without seeds stays empty.
        weights: floating ``[M]``, restart weight of each seed; 1 each if not given.
        damping: d, in [0, 1).
        epsilon: residual a slot at which a node is left alone; above 0.
        max_iter: bound of rounds.
        refine: how many of a query's best nodes take one more exact step on an undirected graph; more than are
            read off pays, 0 leaves it out.
        dtype: float32 or float64.
        memory_mb: bound of the residuals held and the slots gathered at once, in MiB. Each block in hand (one a
            thread on CPU) holds N residuals for each of its queries, for one query at least. The keys of the slots
            that a block has walked are held beside them, 8 bytes each.

    Raises:
        ValueError: for seeds out of range, negative or NaN weights, or a parameter out of range.

    Example:
        >>> from qgrag.graph.csr import to_csr
        >>> csr = to_csr(torch.tensor([[0, 1], [1, 2]]), num_nodes=3, undirected=True)
        >>> local = local_pagerank(csr, Ragged.from_lists([[0]]), damping=0.5, epsilon=1e-6, dtype=torch.float64)
        >>> local.nodes.to_lists(), local.scores.round(decimals=4).tolist()
        ([[0, 1, 2]], [0.5833, 0.3333, 0.0833])
    """
    check_damping(damping)
    if not epsilon > 0:
        raise ValueError(f"epsilon must be above 0; got {epsilon}")
    check_positive("max_iter", max_iter)
    check_positive("refine", refine, 0)
    check_positive("memory_mb", memory_mb)
    check_restart("seeds", seeds, weights, graph.num_nodes, graph.device)
    if isinstance(graph, CSR):
        graph = walk(graph, dtype=dtype)
    if graph.flow.dtype != dtype:
        raise ValueError(f"graph holds {graph.flow.dtype} chances but dtype is {dtype}; make the walk in it")
    mass = restart_mass(seeds, weights, dtype)
    at_once = concurrent_blocks(graph.device)
    held = memory_mb * 2**20 // 2
    if graph.device.type == "cpu":
        held = min(held, CACHE_BYTES)
    fitting = held // at_once // max(1, graph.num_nodes * dtype.itemsize)
    block = max(1, min(-(-seeds.num_rows // at_once), fitting))
    max_slots = max(1, memory_mb * 2**20 // 64 // at_once)
    residuals: SimpleQueue[Tensor] = SimpleQueue()
    for _ in range(min(at_once, max(1, -(-seeds.num_rows // block)))):
        residuals.put(torch.zeros(block * graph.num_nodes, dtype=dtype, device=graph.device))

    def answer(start: int) -> LocalPageRank:
        rows = seeds.rows(start, start + block)
        part = mass[int(seeds.ptr[start]) : int(seeds.ptr[start]) + rows.values.numel()]
        residual = residuals.get()
        try:
            return _push(graph, residual, rows, part, damping, epsilon, max_iter, refine, max_slots)
        finally:
            residuals.put(residual)

    parts = run_blocks(answer, range(0, max(1, seeds.num_rows), block), graph.device)
    counts = torch.cat([part.nodes.counts() for part in parts])
    nodes = torch.cat([part.nodes.values for part in parts])
    batch = torch.repeat_interleave(counts)
    return LocalPageRank(
        Ragged.from_batch(nodes, batch, seeds.num_rows),
        torch.cat([part.scores for part in parts]),
        torch.cat([part.bound for part in parts]),
    )


def _push(
    graph: Walk,
    residual: Tensor,
    seeds: Ragged,
    mass: Tensor,
    damping: float,
    epsilon: float,
    max_iter: int,
    refine: int,
    max_slots: int,
) -> LocalPageRank:
    """Pushes for one block; ``residual`` ``[C * N]`` holds r(u) / degree(u), comes as zeros and leaves as zeros."""
    n = graph.num_nodes
    batch = seeds.batch()
    total = mass.new_zeros(seeds.num_rows).scatter_add_(0, batch, mass)
    restart_keys, restart = sum_by_key(row_keys(batch, seeds.values, n), mass / total[batch])
    restart = restart.nan_to_num_(0.0) / graph.degree[restart_keys % n] if n else restart
    residual.scatter_add_(0, restart_keys, restart)
    frontier = restart_keys[restart > epsilon]
    touched, pushed_keys, pushed_mass = [restart_keys], [frontier[:0]], [restart[:0]]
    seeded = (total > 0).to(mass.dtype)
    left = seeded
    for _ in range(max_iter):
        if frontier.numel() == 0:
            break
        node = frontier % n
        held = residual.index_select(0, frontier)
        residual.scatter_(0, frontier, 0.0)
        pushed_keys.append(frontier)
        pushed_mass.append((1 - damping) * held * graph.degree.index_select(0, node))
        left = left.scatter_add(0, frontier // n, -pushed_mass[-1])
        held = held * damping
        met = []
        first = graph.rowptr.index_select(0, node)
        degree = graph.rowptr.index_select(0, node + 1) - first
        for start, stop in pieces(degree, max_slots):
            at = slice(start, stop)
            slot, owner = _slots(first[at], degree[at])
            key = graph.col.index_select(0, slot) + (frontier - node)[at].index_select(0, owner)
            flow = graph.flow.index_select(0, slot).mul_(held[at].index_select(0, owner))
            residual.scatter_add_(0, key, flow)
            met.append(key)
        stuck = graph.dangling.index_select(0, node)
        if bool(stuck.any()):
            back = held * graph.degree.index_select(0, node) * stuck
            back = back.new_zeros(seeds.num_rows).scatter_add_(0, frontier // n, back)
            residual.scatter_add_(0, restart_keys, restart * back[restart_keys // n])
            met.append(restart_keys)
        touched += met
        bar = epsilon
        if graph.stationary is not None:
            bar += float(left[total > 0].min()) / max(1, graph.col.numel())
        over = [(residual.index_select(0, key) > bar).nonzero().squeeze(1) for key in met]
        frontier = torch.unique(torch.cat([key.index_select(0, at) for key, at in zip(met, over, strict=True)]))
    for key in touched:
        holds = _holders(graph, residual, key, epsilon)
        pushed_keys.append(holds)
        pushed_mass.append(torch.zeros_like(holds, dtype=residual.dtype))
    keys, pushed = sum_by_key(torch.cat(pushed_keys), torch.cat(pushed_mass))
    found = _settle(graph, residual, keys, pushed, seeded, damping, refine, max_slots)
    _clear(residual, touched)
    return found


def _holders(graph: Walk, residual: Tensor, keys: Tensor, epsilon: float) -> Tensor:
    """Keys of nodes over the mean degree that hold more than a node of the mean degree pushes at."""
    mean = graph.col.numel() / max(1, graph.num_nodes)
    degree = graph.degree.index_select(0, keys % max(1, graph.num_nodes))
    large = (degree > mean).nonzero().squeeze(1)
    keys, degree = keys.index_select(0, large), degree.index_select(0, large)
    return keys[residual.index_select(0, keys) * degree > epsilon * mean]


def _slots(first: Tensor, degree: Tensor) -> tuple[Tensor, Tensor]:
    """Slots of rows that start at ``first`` and have ``degree`` slots, and the row each belongs to."""
    owner = torch.repeat_interleave(degree)
    shift = first - (torch.cumsum(degree, 0) - degree)
    return torch.arange(owner.numel(), device=owner.device).add_(shift.index_select(0, owner)), owner


def _settle(
    graph: Walk,
    residual: Tensor,
    keys: Tensor,
    pushed: Tensor,
    seeded: Tensor,
    damping: float,
    refine: int,
    max_slots: int,
) -> LocalPageRank:
    """Scores from what the nodes pushed and still hold, and on an undirected graph from where the rest is bound."""
    n = max(1, graph.num_nodes)
    node, batch = keys % n, keys // n
    score = pushed + (1 - damping) * residual.index_select(0, keys) * graph.degree.index_select(0, node)
    tail = torch.zeros_like(score)
    if graph.stationary is not None and keys.numel():
        on_its_way = seeded - torch.zeros_like(seeded).scatter_add_(0, batch, pushed)
        tail = damping * on_its_way.clamp_(min=0).index_select(0, batch) * graph.stationary.index_select(0, node)
        best = order_by_score(batch, (score + tail).float())
        best = best[_first_of_rows(batch.index_select(0, best), seeded.numel(), refine)]
        score[best] += (1 - damping) * damping * _pull(graph, residual, keys.index_select(0, best), max_slots)
        tail[best] *= damping
    bound = seeded.scatter_add(0, batch, -score).clamp_(min=0).scatter_add_(0, batch, tail)
    return LocalPageRank(Ragged.from_batch(node, batch, seeded.numel()), score + tail, bound)


def _first_of_rows(row: Tensor, num_rows: int, count: int) -> Tensor:
    """Places of the first ``count`` entries of each row, of rows that do not decrease."""
    start = counts_to_ptr(torch.bincount(row, minlength=num_rows)).index_select(0, row)
    return (torch.arange(row.numel(), device=row.device) - start < count).nonzero().squeeze(1)


def _pull(graph: Walk, residual: Tensor, keys: Tensor, max_slots: int) -> Tensor:
    """Mass that the neighbours of each key's node would pass to it if all pushed at once, undirected graphs only.

    The chance to come from u to v is read from v's slot to u: w(u, v) / w(u) is its flow times
    degree(u) / degree(v) times w(v) / w(u).
    """
    assert graph.stationary is not None
    node = keys % graph.num_nodes
    inverse = torch.where(graph.stationary > 0, graph.degree.square() / graph.stationary, 0)
    inflow = residual.new_zeros(keys.numel())
    first = graph.rowptr.index_select(0, node)
    degree = graph.rowptr.index_select(0, node + 1) - first
    for start, stop in pieces(degree, max_slots):
        slot, owner = _slots(first[start:stop], degree[start:stop])
        other = graph.col.index_select(0, slot)
        key = other + (keys - node)[start:stop].index_select(0, owner)
        held = residual.index_select(0, key) * inverse.index_select(0, other)
        inflow[start:stop].scatter_add_(0, owner, held.mul_(graph.flow.index_select(0, slot)))
    return inflow * graph.stationary.index_select(0, node) / graph.degree.index_select(0, node)


def _clear(residual: Tensor, touched: list[Tensor]) -> None:
    """Zeroes what was touched: entry by entry where that is less than all."""
    if 8 * sum(key.numel() for key in touched) < residual.numel():
        for key in touched:
            residual.scatter_(0, key, 0.0)
    else:
        residual.zero_()


def sum_by_key(keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
    """Distinct keys, ascending, and the sum of each key's values. O(M log M)."""
    distinct, place = torch.unique(keys, return_inverse=True)
    return distinct, values.new_zeros(distinct.numel()).scatter_add_(0, place, values)
