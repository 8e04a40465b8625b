"""Shortest paths between all pairs of each query's seeds, over edges in both directions."""

from typing import NamedTuple

import torch
from torch import Tensor

from qgrag.graph.blocks import concurrent_blocks, run_blocks
from qgrag.graph.checks import check_positive, check_seeds
from qgrag.graph.csr import CSR
from qgrag.graph.paths import Paths
from qgrag.graph.ragged import Ragged, counts_to_ptr, pieces, ragged_arange
from qgrag.graph.segments import contains, row_keys

CACHED_SLOTS = 2**18
"""Slots that a block of queries gathers on CPU at most; more fall out of the cache."""


FIRST_LOOK = 32
"""Half-paths of a pair that are looked up first; four times as many each time after."""


class _Level(NamedTuple):
    """Half-paths of one length, sorted by key, then by the place of what they extend.

    ``key`` is owner * N + node; ``parent`` the place in the level before; ``slot`` the CSR slot of the last step.
    """

    key: Tensor
    parent: Tensor
    slot: Tensor


class _Found(NamedTuple):
    """Paths of one length: their pair, and the nodes ``[P, D + 1]`` and slots ``[P, D]`` they pass."""

    pair: Tensor
    nodes: Tensor
    slots: Tensor
    against: Tensor


def shortest_paths(
    csr: CSR, seeds: Ragged, *, max_hops: int = 4, max_paths_per_pair: int = 1, memory_mb: int = 256
) -> Paths:
    """The shortest paths of at most ``max_hops`` hops between every two of each query's seeds.

    DualGraphRAG's second view. Bidirectional breadth-first search: half-paths of half the hops from every seed of
    a block of queries at once, sorted and joined on the node where two halves meet. Edges weigh nothing here.
    Written here because neither PyG nor torch has path search. For T slots within half the hops of the seeds:
    O(T log T) time.

    Ties, the same every time: the path whose middle node (the later one of an even number of nodes) has the lower
    id goes first, then the one whose nodes from the middle back to the source are lower, nearest first, then from
    the middle on to the target; of parallel edges the lower id. A self-loop is never part of a shortest path.

    Args:
        csr: the graph, built with ``undirected=True``.
        seeds: ``B`` rows of node ids; repeats count once. Of a pair, the one that stands first is the source.
        max_hops: longest path looked for, at least 1.
        max_paths_per_pair: keep the first so many of a pair, by the tie rule.
        memory_mb: bound of what the blocks of queries in hand gather, and of their tables of N numbers a query, in
            MiB; one query's own table and half-paths may exceed it, with at most N ``max_paths_per_pair`` half-paths
            of a length for each seed.

    Raises:
        ValueError: for a CSR that lists edges one way, seeds out of range, or a bound below 1.

    Example:
        >>> from qgrag.graph.csr import to_csr
        >>> csr = to_csr(torch.tensor([[0, 2], [1, 1]]), num_nodes=3, undirected=True)
        >>> paths = shortest_paths(csr, Ragged.from_lists([[0, 2]]))
        >>> paths.nodes.to_lists(), paths.edges.to_lists(), paths.direction.tolist()
        ([[0, 1, 2]], [[0, 1]], [1, -1])
    """
    if not csr.undirected:
        raise ValueError("csr lists edges one way; build it with to_csr(..., undirected=True)")
    check_seeds("seeds", seeds, csr.num_nodes, csr.device)
    check_positive("max_hops", max_hops)
    check_positive("max_paths_per_pair", max_paths_per_pair)
    check_positive("memory_mb", memory_mb)
    seeds = _first_occurrences(seeds, csr.num_nodes)
    max_slots = max(1, memory_mb * 2**20 // 64 // concurrent_blocks(csr.device))
    if csr.device.type == "cpu":
        max_slots = min(max_slots, CACHED_SLOTS)
    most = max(1, memory_mb * 2**20 // (16 * max(1, csr.num_nodes) * concurrent_blocks(csr.device)))
    counts = seeds.counts()
    pair_ptr = counts_to_ptr(counts * (counts - 1) // 2)

    def answer(block: tuple[int, int]) -> list[_Found]:
        start, stop = block
        pair = torch.arange(int(pair_ptr[start]), int(pair_ptr[stop]), device=csr.device)
        return _block_paths(csr, seeds.rows(start, stop), pair, max_hops, max_paths_per_pair, max_slots)

    found = run_blocks(answer, _query_blocks(csr, seeds, max_slots, most), csr.device)
    return _assemble(csr, seeds, [part for parts in found for part in parts])


def _first_occurrences(seeds: Ragged, num_nodes: int) -> Ragged:
    """Drops the repeats of a row and keeps its order."""
    batch = seeds.batch()
    key = row_keys(batch, seeds.values, num_nodes)
    order = torch.argsort(key, stable=True)
    first = torch.ones_like(key, dtype=torch.bool)
    first[order[1:]] = key[order[1:]] != key[order[:-1]]
    return Ragged.from_batch(seeds.values[first], batch[first], seeds.num_rows)


def _query_blocks(csr: CSR, seeds: Ragged, max_slots: int, most: int) -> list[tuple[int, int]]:
    """Ranges of at most ``most`` queries whose seeds have about ``max_slots`` slots within two hops."""
    degree = csr.degree()
    volume = torch.zeros(seeds.num_rows, dtype=torch.int64, device=csr.device)
    batch = seeds.batch()
    for start, stop in pieces(degree[seeds.values], max_slots):
        owner, slot = csr.slots(seeds.values[start:stop])
        volume.index_add_(0, batch[start:stop][owner], degree[csr.col[slot]])
    return [
        (first, min(first + most, stop))
        for start, stop in pieces(volume, max_slots)
        for first in range(start, stop, most)
    ]


def _seed_pairs(seeds: Ragged) -> tuple[Tensor, Tensor]:
    """Places of the first and the second seed of every pair of a row, two int64 ``[Q]``."""
    place = torch.arange(seeds.values.numel(), device=seeds.device)
    later = seeds.ptr[1:][seeds.batch()] - 1 - place
    first = torch.repeat_interleave(later)
    within = torch.arange(first.numel(), device=seeds.device) - (torch.cumsum(later, 0) - later)[first]
    return first, first + 1 + within


def _block_paths(
    csr: CSR,
    seeds: Ragged,
    pair: Tensor,
    max_hops: int,
    max_paths: int,
    max_slots: int,
) -> list[_Found]:
    """The paths of a block's pairs, one entry a length."""
    first, second = _seed_pairs(seeds)
    owner = torch.arange(seeds.values.numel(), device=csr.device)
    query = seeds.batch()
    start = row_keys(owner, seeds.values, csr.num_nodes)
    levels = [_Level(start, owner, torch.full_like(owner, -1))]
    seen = start
    found = []
    for length in range(1, max_hops + 1):
        if pair.numel() == 0:
            break
        near, far = (length + 1) // 2, length // 2
        if near == len(levels):
            wanted = torch.zeros_like(owner, dtype=torch.bool)
            wanted[first] = wanted[second] = True
            last = near == (max_hops + 1) // 2
            levels.append(_extend(csr, levels, seen, wanted, query if last else None, max_paths, max_slots))
            if not last:
                seen = torch.sort(torch.cat([seen, torch.unique_consecutive(levels[-1].key)])).values
        met, left, right = _join(levels[near], levels[far], first, second, csr.num_nodes, max_paths)
        found.append(_trace(csr, levels, near, far, pair[met], left, right))
        open_pairs = torch.ones_like(pair, dtype=torch.bool)
        open_pairs[met] = False
        pair, first, second = pair[open_pairs], first[open_pairs], second[open_pairs]
    return found


def _extend(
    csr: CSR,
    levels: list[_Level],
    seen: Tensor,
    wanted: Tensor,
    query: Tensor | None,
    max_paths: int,
    max_slots: int,
) -> _Level:
    """The half-paths one hop longer of the ``wanted`` owners, at most ``max_paths`` for each owner and node.

    Given the ``query`` of each owner, this level is the last, and only half-paths that can meet another's are kept;
    nodes that the owner has seen before need no dropping there, since they join no pair that is still open.
    """
    level = levels[-1]
    active = wanted[level.key // csr.num_nodes].nonzero().squeeze(1)
    key = level.key.index_select(0, active)
    owner, node = key // csr.num_nodes, key % csr.num_nodes
    cuts = pieces(csr.rowptr[node + 1] - csr.rowptr[node], max_slots)
    parts = []
    for start, stop in cuts:
        place, slot = csr.slots(node[start:stop])
        child = csr.col.index_select(0, slot)
        if query is not None and len(cuts) == 1:
            kept = _can_meet(child, place, owner, level.key, query, csr.num_nodes)
            child, place, slot = (tensor.index_select(0, kept) for tensor in (child, place, slot))
        key = row_keys(owner[start:stop].index_select(0, place), child, csr.num_nodes)
        parent = active[start:stop].index_select(0, place)
        if query is None:
            new = (~contains(seen, key)).nonzero().squeeze(1)
            key, parent, slot = (tensor.index_select(0, new) for tensor in (key, parent, slot))
        parts.append(_first_by_key(_Level(key, parent, slot), max_paths))
    if len(parts) == 1:
        return parts[0]
    return _first_by_key(_Level(*(torch.cat(tensors) for tensors in zip(*parts, strict=True))), max_paths)


def _can_meet(child: Tensor, place: Tensor, owner: Tensor, before: Tensor, query: Tensor, num_nodes: int) -> Tensor:
    """Which children another owner of the same query reaches too, at this level or the one before.

    Owners overwrite one another in a table of queries and nodes; whoever does not find its own name there shares
    the node, and then so does the one whose name stands there. O(M) time, no sort.

    Args:
        child: int64 ``[M]``, nodes reached; ``owner[place]`` is who reaches them.
        place: int64 ``[M]``.
        owner: int64 ``[A]``.
        before: keys of the level before.
        query: int64, the query of each owner.
        num_nodes: nodes of the graph.

    Returns:
        Places among the M, int64, ascending.
    """
    cell = (query.index_select(0, owner) * num_nodes).index_select(0, place).add_(child)
    own = owner.index_select(0, place)
    table = torch.empty(int(query[-1] + 1) * num_nodes, dtype=torch.int64, device=child.device)
    table.scatter_(0, cell, own)
    shared = (table.index_select(0, cell) != own).nonzero().squeeze(1)
    table.scatter_(0, cell.index_select(0, shared), -1)
    table.scatter_(0, row_keys(query.index_select(0, before // num_nodes), before % num_nodes, num_nodes), -1)
    return (table.index_select(0, cell) < 0).nonzero().squeeze(1)


def _first_by_key(level: _Level, max_paths: int) -> _Level:
    key, order = torch.sort(level.key, stable=True)
    kept = _first_of_runs(key, max_paths).nonzero().squeeze(1)
    order = order.index_select(0, kept)
    return _Level(key.index_select(0, kept), level.parent.index_select(0, order), level.slot.index_select(0, order))


def _first_of_runs(key: Tensor, count: int) -> Tensor:
    """Bool ``[M]``: the first ``count`` of each run of equal sorted keys."""
    first = torch.ones_like(key, dtype=torch.bool)
    first[count:] = key[count:] != key[:-count]
    return first


def _join(
    near: _Level, far: _Level, first: Tensor, second: Tensor, num_nodes: int, max_paths: int
) -> tuple[Tensor, Tensor, Tensor]:
    """Where half-paths of a pair's two seeds meet: place of the pair, of the near half, of the far half.

    One side is looked up in the other (the shorter, where a node has one half-path at most), from its lowest node
    on and in growing steps, since a pair leaves as soon as it has its paths.
    """
    swapped = max_paths == 1 and far.key.numel() < near.key.numel()
    if swapped:
        near, far, first, second = far, near, second, first
    at = torch.searchsorted(near.key, first * num_nodes)
    end = torch.searchsorted(near.key, (first + 1) * num_nodes)
    pair = torch.arange(first.numel(), device=first.device)
    missing = torch.full_like(first, max_paths)
    met, width = [(pair[:0], pair[:0], pair[:0])], FIRST_LOOK
    while pair.numel():
        row, step = ragged_arange((end - at).clamp(max=width))
        left = at.index_select(0, row) + step
        sought = near.key.index_select(0, left) + ((second - first) * num_nodes).index_select(0, row)
        low = torch.searchsorted(far.key, sought)
        if max_paths == 1:
            matches = (far.key.index_select(0, low.clamp(max=far.key.numel() - 1)) == sought).long()
        else:
            matches = torch.searchsorted(far.key, sought, right=True) - low
        hit, step = ragged_arange(matches)
        met.append((pair[row[hit]], left[hit], low[hit] + step))
        missing -= torch.zeros_like(missing).scatter_add_(0, row, matches)
        at = torch.minimum(at + width, end)
        still = ((missing > 0) & (at < end)).nonzero().squeeze(1)
        pair, at, end, first, second, missing = (x[still] for x in (pair, at, end, first, second, missing))
        width *= 4
    pair, left, right = (torch.cat(tensors) for tensors in zip(*met, strict=True))
    if swapped:
        left, right = right, left
    order = torch.argsort(pair, stable=True)
    pair = pair[order]
    kept = _first_of_runs(pair, max_paths)
    return pair[kept], left[order[kept]], right[order[kept]]


def _trace(csr: CSR, levels: list[_Level], near: int, far: int, pair: Tensor, left: Tensor, right: Tensor) -> _Found:
    """Follows both halves back to their seeds."""
    nodes = torch.empty(pair.numel(), near + far + 1, dtype=torch.int64, device=csr.device)
    slots = torch.empty(pair.numel(), near + far, dtype=torch.int64, device=csr.device)
    for hop in range(near, -1, -1):
        nodes[:, hop] = levels[hop].key[left] % csr.num_nodes
        if hop:
            slots[:, hop - 1] = levels[hop].slot[left]
            left = levels[hop].parent[left]
    for hop in range(far, -1, -1):
        nodes[:, near + far - hop] = levels[hop].key[right] % csr.num_nodes
        if hop:
            slots[:, near + far - hop] = levels[hop].slot[right]
            right = levels[hop].parent[right]
    against = torch.arange(near + far, device=csr.device) >= near
    return _Found(pair, nodes, slots, against.expand_as(slots))


def _assemble(csr: CSR, seeds: Ragged, found: list[_Found]) -> Paths:
    """All found paths in the order of their pairs."""
    counts = seeds.counts()
    query = torch.repeat_interleave(counts * (counts - 1) // 2)
    width = max((part.slots.size(1) for part in found), default=0)
    pair = torch.cat([query[:0], *(part.pair for part in found)])
    nodes = torch.full((pair.numel(), width + 1), -1, dtype=torch.int64, device=csr.device)
    slots, against = (
        nodes[:, 1:].clone(),
        torch.zeros(pair.numel(), width, dtype=torch.bool, device=csr.device),
    )
    start = 0
    for part in found:
        stop, hops = start + part.pair.numel(), part.slots.size(1)
        nodes[start:stop, : hops + 1], slots[start:stop, :hops] = part.nodes, part.slots
        against[start:stop, :hops] = part.against
        start = stop
    order = torch.argsort(pair, stable=True)
    pair, nodes, slots, against = pair[order], nodes[order], slots[order], against[order]
    step = slots >= 0
    length = step.sum(1)
    slot = slots[step]
    direction = torch.where(against[step], -csr.direction[slot], csr.direction[slot])
    return Paths(
        query=query[pair],
        source=nodes[:, 0],
        target=nodes.gather(1, length[:, None]).squeeze(1),
        nodes=Ragged(nodes[nodes >= 0], counts_to_ptr(length + 1)),
        edges=Ragged(csr.edge_id[slot], counts_to_ptr(length)),
        direction=direction,
        num_queries=seeds.num_rows,
    )
