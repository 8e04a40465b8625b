"""Personalised PageRank of a batch of restart distributions by blocked power iteration."""

import logging
import math
from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import torch
from torch import Tensor

from qgrag.graph.checks import check_positive, check_seeds, check_weights
from qgrag.graph.csr import CSR
from qgrag.graph.ragged import Ragged
from qgrag.graph.random_walk import Transition, transition

logger = logging.getLogger(__name__)

FIRST_LOOKS, LATER_LOOKS = 4, 6
"""Iterations before each of the first two looks at the change, and at most between later ones."""

FIRST_RADIUS = 0.4
"""Eigenvalues of an undirected graph, times the damping, are taken to lie within this of 0 until seen otherwise."""

ROUNDING_FLOOR = 64
"""Change, in units of the dtype's rounding, under which a change that no longer falls is rounding and not error.

It no longer falls where its rate is nearer to 1 than to the damping, which is the slowest rate of convergence.
"""

LEAST_TOL = {torch.float32: 2e-7, torch.float64: 4e-16}
"""Least tolerance of each dtype, about two units of its rounding."""

CPU_BLOCK, CUDA_BLOCK = 32, 256
"""Columns of a block: on CPU a row of 32 floats is two cache lines, and wider blocks fall out of the cache."""


class TopNodes(NamedTuple):
    """The best nodes of each query: ``ids`` int64 ``[B, k]`` padded with -1, ``scores`` ``[B, k]`` padded with 0."""

    ids: Tensor
    scores: Tensor


def personalized_pagerank(
    graph: CSR | Transition,
    restart: Ragged | Tensor,
    weights: Tensor | None = None,
    *,
    damping: float = 0.85,
    tol: float = 1e-6,
    max_iter: int | None = None,
    block: int | None = None,
    dtype: torch.dtype = torch.float32,
) -> Tensor:
    """Scores of all nodes for each query: the fixed point of x = d W D^-1 x + (d m(x) + 1 - d) s.

    d is the damping, s the query's restart distribution, W D^-1 the out-weights normalised to 1 a node, and m(x)
    the score of nodes without out-weight, which walks back to s (networkx: ``dangling=personalization``). Power
    iteration (Page et al. 1999; Haveliwala 2002) on a directed graph. On an undirected one Chebyshev's semi-iteration
    (Golub and Varga 1961): where all other eigenvalues lie within r of 0, its error falls by r / (1 + sqrt(1 - r^2))
    a time and the power iteration's by r. It starts from r = 0.4, as in graphs that mix well, and takes the larger r
    that a slower fall shows (Hageman and Young 1981), up to d; too small an r is never slower than the power
    iteration. A hub's entries are summed in pieces, so that float32 keeps its precision. Written here because
    ``torch_geometric.utils.get_ppr`` takes neither weights nor restart distributions. O(B S log(1/tol)) time for S
    slots, split into blocks of columns, since a block whose vectors fit the cache runs several times faster than a
    wide one.

    Args:
        graph: the graph, walked along its slots; a ``Transition`` made once spares the sort in each call.
        restart: ``B`` rows of node ids, whose weights add up where an id repeats; or a dense ``[B, N]``. Rows are
            normalised to 1. A row without weight gets scores of 0.
        weights: floating ``[M]``, one for each id in ``restart``; 1 each if not given.
        damping: d, in [0, 1).
        tol: a block's iteration stops when every x changes by less in L1; the L1 error is then at most
            tol d / (1 - d). float32 takes 2e-7 or more, float64 4e-16 or more. It also stops where rounding keeps
            the change from falling, in float32 at 8e-6 at worst.
        max_iter: bound of iterations; without it, as many as the geometric bound 2 d^n < tol needs.
        block: columns at a time; 32 on CPU and 256 on CUDA if not given. Beside the answer it bounds the memory:
            about four times block N numbers.
        dtype: float32 or float64.

    Returns:
        ``dtype`` ``[B, N]``, each row summing to 1 (to 0 without restart weight).

    Raises:
        ValueError: for seeds out of range, negative or NaN weights, or a parameter out of range.

    Example:
        >>> from qgrag.graph.csr import to_csr
        >>> csr = to_csr(torch.tensor([[0, 1], [1, 2]]), num_nodes=3, undirected=True)
        >>> personalized_pagerank(csr, Ragged.from_lists([[0]]), damping=0.5, dtype=torch.float64).round(decimals=4)
        tensor([[0.5833, 0.3333, 0.0833]], dtype=torch.float64)
    """
    num_rows = restart.num_rows if isinstance(restart, Ragged) else restart.size(0)
    out = torch.empty(num_rows, graph.num_nodes, dtype=dtype, device=graph.device)
    for start, x in _blocks(graph, restart, weights, damping, tol, max_iter, block, dtype):
        out[start : start + x.size(1)] = x.t()
    return out


def personalized_pagerank_topk(
    graph: CSR | Transition,
    restart: Ragged | Tensor,
    k: int,
    weights: Tensor | None = None,
    *,
    damping: float = 0.85,
    tol: float = 1e-6,
    max_iter: int | None = None,
    block: int | None = None,
    dtype: torch.dtype = torch.float32,
) -> TopNodes:
    """The ``k`` best nodes of each query, without the scores of all nodes for all queries in memory.

    Arguments as in :func:`personalized_pagerank`. Nodes of score 0 are left out; equal scores go by lower id.

    Raises:
        ValueError: as there, or ``k`` below 1.
    """
    check_positive("k", k)
    num_rows = restart.num_rows if isinstance(restart, Ragged) else restart.size(0)
    ids = torch.full((num_rows, k), -1, dtype=torch.int64, device=graph.device)
    scores = torch.zeros(num_rows, k, dtype=dtype, device=graph.device)
    for start, x in _blocks(graph, restart, weights, damping, tol, max_iter, block, dtype):
        top = _top_rows(x.t().contiguous(), min(k, graph.num_nodes))
        rows = slice(start, start + x.size(1))
        ids[rows, : top.ids.size(1)], scores[rows, : top.ids.size(1)] = top
    return TopNodes(ids, scores)


def _top_rows(x: Tensor, k: int) -> TopNodes:
    """Best ``k`` of each row, ties by lower id: what reaches the k-th score, sorted."""
    bar = torch.topk(x, k, dim=1).values[:, -1:]
    row, node = ((x >= bar) & (x > 0)).nonzero().unbind(1)
    value = x[row, node]
    order = torch.argsort(value, descending=True, stable=True)
    order = order[torch.argsort(row[order], stable=True)]
    row, node, value = row[order], node[order], value[order]
    kept = Ragged.from_batch(node, row, x.size(0))
    place = torch.arange(row.numel(), device=x.device) - kept.ptr[row]
    inside = place < k
    ids = torch.full((x.size(0), k), -1, dtype=torch.int64, device=x.device)
    scores = x.new_zeros(x.size(0), k)
    ids[row[inside], place[inside]] = node[inside]
    scores[row[inside], place[inside]] = value[inside]
    return TopNodes(ids, scores)


def _blocks(
    graph: CSR | Transition,
    restart: Ragged | Tensor,
    weights: Tensor | None,
    damping: float,
    tol: float,
    max_iter: int | None,
    block: int | None,
    dtype: torch.dtype,
) -> Iterator[tuple[int, Tensor]]:
    """Yields (first query, scores ``[N, C]``) for each block of queries."""
    check_damping(damping)
    if dtype not in LEAST_TOL:
        raise ValueError(f"dtype must be torch.float32 or torch.float64; got {dtype}")
    if not tol >= LEAST_TOL[dtype]:
        raise ValueError(f"tol must be at least {LEAST_TOL[dtype]} in {dtype}; got {tol}")
    if max_iter is None:
        max_iter = 1 if damping == 0 else math.ceil(math.log(tol / 2) / math.log(damping)) + FIRST_LOOKS
    check_positive("max_iter", max_iter)
    check_restart("restart", restart, weights, graph.num_nodes, graph.device)
    if block is None:
        block = CPU_BLOCK if graph.device.type == "cpu" else CUDA_BLOCK
    check_positive("block", block)
    matrix = graph if isinstance(graph, Transition) and graph.value.dtype == dtype else None
    if matrix is None:
        if isinstance(graph, Transition):
            raise ValueError(f"graph holds {graph.value.dtype} chances but dtype is {dtype}; make the transition in it")
        matrix = transition(graph, dtype=dtype)
    matrix = replace(matrix, value=matrix.value * damping)
    num_rows = restart.num_rows if isinstance(restart, Ragged) else restart.size(0)
    for start in range(0, num_rows, block):
        s = restart_columns(restart, weights, start, min(start + block, num_rows), graph.num_nodes, dtype)
        yield start, _iterate(matrix, s, damping, tol, max_iter)


def check_damping(damping: float) -> None:
    """``damping`` must lie in [0, 1)."""
    if not 0 <= damping < 1:
        raise ValueError(f"damping must be at least 0 and less than 1; got {damping}")


def check_restart(
    name: str, restart: Ragged | Tensor, weights: Tensor | None, num_nodes: int, device: torch.device
) -> None:
    """Ids in range, weights finite and not negative, shapes that fit.

    Raises:
        ValueError: naming the argument and the value.
    """
    if isinstance(restart, Ragged):
        check_seeds(name, restart, num_nodes, device)
        if weights is not None:
            if weights.shape != restart.values.shape:
                raise ValueError(
                    f"weights must be [{restart.values.numel()}], one for each seed; got shape {tuple(weights.shape)}"
                )
            check_weights("weights", weights)
        return
    if weights is not None:
        raise ValueError("weights belong to a ragged restart; a dense restart holds its own")
    if restart.dim() != 2 or restart.size(1) != num_nodes:
        raise ValueError(f"restart must be [B, {num_nodes}]; got shape {tuple(restart.shape)}")
    check_weights("restart", restart)


def restart_columns(
    restart: Ragged | Tensor,
    weights: Tensor | None,
    start: int,
    stop: int,
    num_nodes: int,
    dtype: torch.dtype,
) -> Tensor:
    """Restart distributions of the queries ``start`` to ``stop - 1`` as columns, ``[N, C]``, each summing to 1 or 0."""
    if isinstance(restart, Tensor):
        dense = restart[start:stop].to(torch.promote_types(restart.dtype, dtype))
        largest = dense.amax(1, keepdim=True) if num_nodes else dense.new_ones(stop - start, 1)
        columns = (dense / torch.where(largest > 0, largest, 1)).to(dtype).t().contiguous()
    else:
        rows = restart.rows(start, stop)
        columns = torch.zeros(num_nodes, stop - start, dtype=dtype, device=restart.device)
        own = None if weights is None else weights[int(restart.ptr[start]) : int(restart.ptr[stop])]
        mass = restart_mass(rows, own, dtype)
        columns.index_put_((rows.values, rows.batch()), mass, accumulate=True)
    total = columns.sum(0)
    return columns.div_(torch.where(total > 0, total, 1))


def restart_mass(seeds: Ragged, weights: Tensor | None, dtype: torch.dtype) -> Tensor:
    """Weight of each seed divided by the largest of its row, so that a row's sum stays finite: ``[M]`` in ``dtype``."""
    if weights is None:
        return torch.ones_like(seeds.values, dtype=dtype)
    batch, wide = seeds.batch(), weights.double()
    largest = wide.new_zeros(seeds.num_rows).scatter_reduce_(0, batch, wide, "amax")
    return (wide / torch.where(largest > 0, largest, 1)[batch]).to(dtype)


def _iterate(matrix: Transition, s: Tensor, damping: float, tol: float, max_iter: int) -> Tensor:
    """Fixed point of a block, of a matrix whose chances are damped already.

    It looks at the change where the rate so far says that it is small enough.
    """
    restart = _Restart(s)
    x, before = s, s
    radius, weight = (min(damping, FIRST_RADIUS) if matrix.reversible else 0.0), 1.0
    look, last_look, last_change = FIRST_LOOKS, 0, math.inf
    for iteration in range(1, max_iter + 1):
        back = torch.full((s.size(1),), 1 - damping, dtype=s.dtype, device=s.device)
        if matrix.dangling.numel():
            back += damping * x[matrix.dangling].sum(0)
        y = restart.add(matrix.step(x), back)
        if iteration in (look, max_iter):
            change = float(torch.linalg.vector_norm(x - y, 1, dim=0).max()) if s.numel() else 0.0
            rate = (change / last_change) ** (1 / (iteration - last_look))
            if change < tol or (rate > (1 + damping) / 2 and change < ROUNDING_FLOOR * torch.finfo(s.dtype).eps):
                return y.clamp_(min=0)
            slowest = _slowest_rate(rate, radius) if matrix.reversible and rate < 1 else 0.0
            if slowest > 1.02 * radius:
                radius, weight = min(slowest, damping), 1.0
            rate = max(rate, _chebyshev_rate(radius))
            ahead = math.log(tol / change) / math.log(rate) if 0 < rate < 1 else FIRST_LOOKS
            look, last_look, last_change = iteration + min(LATER_LOOKS, math.ceil(ahead)), iteration, change
        if weight > 1:
            y = torch.lerp(before, y, weight, out=y)
        weight = 1 / (1 - radius**2 * (weight / 4 if weight > 1 else 1 / 2))
        x, before = y, x
    logger.warning("personalised PageRank stopped after %d iterations, above the tolerance %g", max_iter, tol)
    return x.clamp_(min=0)


def _chebyshev_rate(radius: float) -> float:
    """Factor by which the error falls an iteration where all eigenvalues lie within ``radius`` of 0."""
    return radius / (1 + math.sqrt(1 - radius**2))


def _slowest_rate(rate: float, radius: float) -> float:
    """The eigenvalue outside ``radius`` whose error falls by ``rate``: the inverse of Chebyshev's growth there."""
    if rate == 0:
        return 0.0
    growth = rate * (1 + math.sqrt(1 - radius**2))
    return (growth + radius**2 / growth) / 2


class _Restart:
    """Adds multiples of the restart columns ``s`` ``[N, C]``, entry by entry where few are not 0."""

    def __init__(self, s: Tensor) -> None:
        self.s = s
        self.sparse = 16 * int(torch.count_nonzero(s)) < s.numel()
        if self.sparse:
            self.place = s.flatten().nonzero().squeeze(1)
            self.value = s.flatten()[self.place]
            self.column = self.place % s.size(1)

    def add(self, y: Tensor, scale: Tensor) -> Tensor:
        """``y`` plus each column of s times its ``scale`` ``[C]``, in place."""
        if not self.sparse:
            return y.addcmul_(self.s, scale[None])
        y.view(-1).scatter_add_(0, self.place, self.value * scale[self.column])
        return y
