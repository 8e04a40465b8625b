"""Personalised PageRank around the seeds only: forward push over a sparse frontier."""

from typing import NamedTuple

import torch
from torch import Tensor

from qgrag.graph.checks import check_positive
from qgrag.graph.csr import CSR
from qgrag.graph.expand import pieces
from qgrag.graph.ppr import check_damping, check_restart
from qgrag.graph.ragged import Ragged
from qgrag.graph.unique import row_keys


class LocalPageRank(NamedTuple):
    """Scores of the nodes that the pushes reached, nodes ascending within a query.

    Attributes:
        nodes: ``B`` rows of node ids.
        scores: floating ``[M]``, one for each of ``nodes.values``.
        missing: floating ``[B]``, the mass not placed; it is the L1 distance to the exact scores.
    """

    nodes: Ragged
    scores: Tensor
    missing: Tensor


def local_pagerank(
    csr: CSR,
    seeds: Ragged,
    weights: Tensor | None = None,
    *,
    damping: float = 0.85,
    epsilon: float = 1e-5,
    max_iter: int = 100,
    dtype: torch.dtype = torch.float32,
    memory_mb: int = 512,
) -> LocalPageRank:
    """Scores around the seeds, at a cost that grows with the neighbourhood and not with the graph.

    Forward push (Andersen, Chung and Lang 2006), all frontiers of a batch at once: residual mass r starts at the
    restart distribution; a node u with r(u) > epsilon * degree(u) keeps (1 - d) r(u) as score and passes d r(u) on
    along its out-weights (a node without out-weight passes it to the restart distribution).

    Error: scores never exceed the exact ones, and fall short of them by ``missing`` in sum (L1), a figure known for
    each query at the end. Where every push has ended before ``max_iter``, r(u) <= epsilon * degree(u) for all u, so
    that on an undirected graph without weights no node's score is short by more than epsilon * degree.
    Time: each push places (1 - d) epsilon degree(u) at least, hence at most 1 / ((1 - d) epsilon) slots a query.

    Args:
        csr: the graph, walked along its slots.
        seeds: ``B`` rows of node ids; a row without seeds stays empty.
        weights: floating ``[M]``, restart weight of each seed; 1 each if not given.
        damping: d, in [0, 1).
        epsilon: residual a slot at which a node is left alone; above 0.
        max_iter: bound of rounds.
        dtype: float32 or float64.
        memory_mb: bound of the slots gathered at once, in MiB.

    Raises:
        ValueError: for seeds out of range, negative or NaN weights, or a parameter out of range.
    """
    check_damping(damping)
    if not epsilon > 0:
        raise ValueError(f"epsilon must be above 0; got {epsilon}")
    check_positive("max_iter", max_iter)
    check_positive("memory_mb", memory_mb)
    check_restart(seeds, weights, csr.num_nodes, csr.device)
    max_slots = max(1, memory_mb * 2**20 // 64)
    mass = (
        torch.ones(seeds.values.numel(), dtype=dtype, device=csr.device)
        if weights is None
        else weights.to(dtype)
    )
    total = torch.zeros(seeds.num_rows, dtype=dtype, device=csr.device).index_add_(0, seeds.batch(), mass)
    mass = mass / total.clamp_min(torch.finfo(dtype).tiny)[seeds.batch()]
    restart_keys, restart_mass = sum_by_key(row_keys(seeds.batch(), seeds.values, csr.num_nodes), mass)

    keys, residual = restart_keys, restart_mass
    score = torch.zeros_like(residual)
    for _ in range(max_iter):
        node = keys % csr.num_nodes if csr.num_nodes else keys
        degree = csr.rowptr[node + 1] - csr.rowptr[node]
        active = (residual > epsilon * degree.clamp_min(1)).nonzero().squeeze(1)
        if active.numel() == 0:
            break
        pushed = residual[active]
        score[active] += (1 - damping) * pushed
        residual[active] = 0
        new_keys, new_mass = [keys], [residual]
        for start, stop in pieces(degree[active], max_slots):
            part = active[start:stop]
            owner, slot = csr.slots(node[part])
            moved = damping * pushed[start:stop]
            if csr.weight is None:
                share = (moved / degree[part].clamp_min(1))[owner]
                out = degree[part].to(dtype)
            else:
                weight = csr.weight[slot].to(dtype)
                out = torch.zeros_like(moved).index_add_(0, owner, weight)
                share = (moved / out.clamp_min(torch.finfo(dtype).tiny))[owner] * weight
            target = (
                row_keys(keys[part] // csr.num_nodes, torch.zeros_like(part), csr.num_nodes)[owner]
                + csr.col[slot]
            )
            target, share = sum_by_key(target, share)
            new_keys.append(target)
            new_mass.append(share)
            stuck = out == 0
            if stuck.any():
                back = torch.zeros_like(total).index_add_(0, keys[part[stuck]] // csr.num_nodes, moved[stuck])
                new_keys.append(restart_keys)
                new_mass.append(back[restart_keys // csr.num_nodes] * restart_mass)
        padded = torch.cat([score, score.new_zeros(sum(part.numel() for part in new_keys[1:]))])
        keys, residual, score = sum_by_key_pair(torch.cat(new_keys), torch.cat(new_mass), padded)
    batch = keys // csr.num_nodes if csr.num_nodes else keys
    missing = torch.zeros_like(total).index_add_(0, batch, residual)
    met = score > 0
    nodes = Ragged.from_batch(
        (keys % csr.num_nodes if csr.num_nodes else keys)[met], batch[met], seeds.num_rows
    )
    return LocalPageRank(nodes, score[met], missing)


def sum_by_key(keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
    """Distinct keys, ascending, and the sum of each key's values. O(M log M)."""
    distinct, place = torch.unique(keys, return_inverse=True)
    return distinct, values.new_zeros(distinct.numel()).index_add_(0, place, values)


def sum_by_key_pair(keys: Tensor, first: Tensor, second: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """As :func:`sum_by_key`, for two values a key."""
    distinct, place = torch.unique(keys, return_inverse=True)
    zeros = first.new_zeros(distinct.numel())
    return distinct, zeros.index_add(0, place, first), zeros.index_add(0, place, second)
