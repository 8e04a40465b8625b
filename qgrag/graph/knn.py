"""The k-nearest-neighbour graph of a set of vectors: build, append, remove."""

from dataclasses import dataclass
from typing import Literal, get_args

import torch
from torch import Tensor

from qgrag.graph.checks import check_positive, check_vectors
from qgrag.graph.knn_approx import hnsw_pairs, ivf_neighbours
from qgrag.graph.knn_exact import Pairs, Screen

Method = Literal["exact", "ivf", "hnsw"]


@dataclass(frozen=True, eq=False)
class KNNGraph:
    """Each node's nearest others, by score (higher first), then id (lower first).

    Attributes:
        index: int64 ``[N, k]``, padded with -1 where there are fewer than k others.
        score: float32 ``[N, k]``, inner products (cosines of unit vectors), padded with -inf.
    """

    index: Tensor
    score: Tensor

    @property
    def num_nodes(self) -> int:
        """Number of nodes ``N``."""
        return self.index.size(0)

    def edge_index(self) -> Tensor:
        """The graph as PyG's int64 ``[2, E]``, node to neighbour, padding left out."""
        row, place = (self.index >= 0).nonzero().unbind(1)
        return torch.stack([row, self.index[row, place]])


def knn_graph(
    x: Tensor,
    k: int,
    *,
    method: Method = "exact",
    lists: int | None = None,
    probes: int = 8,
    screen: torch.dtype | None = None,
    memory_mb: int = 512,
) -> KNNGraph:
    """The ``k`` nearest others of each vector by inner product.

    Scores are summed in float64 and rounded to float32 (``ivf``: summed in float32); the higher goes first, then the
    lower id. ``exact`` is exact under that order, whatever the screening lost (see ``knn_exact``); it multiplies each
    pair once, where ``faiss.IndexFlatIP`` and PyG's ``MIPSKNNIndex`` over it multiply it twice. ``ivf`` looks into
    the lists nearest to a vector, and its recall depends on ``probes``: measure it with :func:`knn_recall`. ``hnsw``
    calls ``faiss.IndexHNSWFlat``.

    Time: N^2 d / 2 multiplications for ``exact``, N d (lists + N probes / lists) for ``ivf``.

    Args:
        x: floating ``[N, d]``, unit vectors for cosine; computed in float32.
        k: neighbours wanted, at least 1.
        method: ``"exact"``, ``"ivf"`` or ``"hnsw"`` (CPU only).
        lists: inverted lists of ``ivf``; N / 100 if not given.
        probes: lists that ``ivf`` looks into for each vector.
        screen: dtype of the screening product, ``torch.bfloat16`` or ``torch.float32``; the faster of the two on the
            device of ``x`` if not given (:func:`qgrag.graph.precision.screening_dtype`). The result is the same.
        memory_mb: bound of block buffers and candidates, in MiB, beside ``x``, its copy in the screening dtype and
            about 100 bytes for each of the N k results.

    Raises:
        ValueError: for NaN or a norm above 1e18 in ``x``, a shape, method or dtype that is not one of these, or a
            number below 1.

    Example:
        >>> x = torch.tensor([[1.0, 0.0], [0.8, 0.6], [0.0, 1.0]])
        >>> graph = knn_graph(x, k=2)
        >>> graph.index.tolist(), graph.score[0].tolist()
        ([[1, 2], [0, 2], [1, 0]], [0.800000011920929, 0.0])
    """
    _check(x, "x", k, memory_mb)
    if method not in get_args(Method):
        raise ValueError(f'method must be "exact", "ivf" or "hnsw"; got {method!r}')
    x = x.to(torch.float32)
    nodes = torch.arange(x.size(0), device=x.device)
    if method == "hnsw" and x.size(0):
        return _graph(hnsw_pairs(x, k, memory_mb), x.size(0), k)
    if method == "ivf" and x.size(0):
        return KNNGraph(*ivf_neighbours(x, k, lists, probes, memory_mb))
    search = Screen(x, k, screen, memory_mb)
    search.raise_bars(nodes)
    _join_all(search, nodes[torch.argsort(search.bar, stable=True)])
    return _graph(search.best(), x.size(0), k)


def knn_recall(graph: KNNGraph, x: Tensor, *, sample: int = 1000, seed: int = 0, memory_mb: int = 512) -> float:
    """Share of the exact neighbours that ``graph`` holds, over a random sample of rows.

    Args:
        graph: the graph to judge.
        x: floating ``[N, d]``, its vectors.
        sample: rows drawn, without repeats.
        seed: of the draw.
        memory_mb: as in :func:`knn_graph`.

    Raises:
        ValueError: if graph and vectors do not fit, or ``sample`` is below 1.
    """
    k = graph.index.size(1)
    _check(x, "x", k, memory_mb)
    _check_graph(graph, x.size(0), k)
    check_positive("sample", sample)
    drawn = torch.randperm(x.size(0), generator=torch.Generator().manual_seed(seed))[:sample].to(x.device)
    search = Screen(x.to(torch.float32), k, None, memory_mb)
    search.multiply(drawn, torch.arange(x.size(0), device=x.device), both=False)
    exact = search.best()
    if exact.owner.numel() == 0:
        return 1.0
    return float((graph.index[exact.owner] == exact.other[:, None]).any(1).float().mean())


def append_knn(
    graph: KNNGraph,
    x_old: Tensor,
    x_new: Tensor,
    k: int,
    *,
    screen: torch.dtype | None = None,
    memory_mb: int = 512,
) -> KNNGraph:
    """The exact graph of ``cat([x_old, x_new])`` from the exact graph of ``x_old``.

    New rows meet all rows, old rows only the new: O(M (N + M) d) for M new rows, and the same result as a build
    from nothing.

    Args:
        graph: the graph before, of K >= ``k`` neighbours per node: ``index`` int64 and ``score`` float32 ``[N, K]``.
        x_old: floating ``[N, d]``, its vectors.
        x_new: floating ``[M, d]``, the vectors to add; they get the ids N to N + M - 1.
        k: neighbours wanted, at most the graph's.
        screen: as in :func:`knn_graph`.
        memory_mb: as in :func:`knn_graph`.

    Returns:
        The graph of N + M nodes, ``[N + M, k]``.

    Raises:
        ValueError: if the graph does not belong to ``x_old`` or holds fewer than ``k`` neighbours per node, or as
            :func:`knn_graph` does.
    """
    _check(x_old, "x_old", k, memory_mb)
    _check(x_new, "x_new", k, memory_mb)
    if x_new.size(1) != x_old.size(1):
        raise ValueError(f"x_new must have {x_old.size(1)} columns as x_old has; got {x_new.size(1)}")
    _check_graph(graph, x_old.size(0), k)
    n = x_old.size(0)
    x = torch.cat([x_old, x_new]).to(torch.float32)
    search = Screen(x, k, screen, memory_mb)
    search.bar[:n] = graph.score[:, k - 1] - search.error
    old, new = torch.arange(n, device=x.device), torch.arange(n, x.size(0), device=x.device)
    search.raise_bars(new)
    search.multiply(new, old[torch.argsort(search.bar[:n])], both=True)
    _join_all(search, new[torch.argsort(search.bar[n:], stable=True)])
    return _graph(search.best(_stored(graph, old, k)), x.size(0), k)


def remove_knn(
    graph: KNNGraph,
    x_kept: Tensor,
    keep_mask: Tensor,
    k: int,
    *,
    screen: torch.dtype | None = None,
    memory_mb: int = 512,
) -> KNNGraph:
    """The exact graph of ``x_kept`` from the exact graph of all vectors.

    Only rows that lost a neighbour are searched again: O(L K d) for L such rows among K kept, and the same result
    as a build from nothing. Ids close up: a kept node's new id is the number of kept nodes before it.

    Args:
        graph: the graph before.
        x_kept: floating ``[K, d]``, the vectors that stay, in their order.
        keep_mask: bool ``[N]``, which nodes of ``graph`` stay.
        k: neighbours wanted, at most the graph's.
        screen: as in :func:`knn_graph`.
        memory_mb: as in :func:`knn_graph`.

    Raises:
        ValueError: if mask, vectors and graph do not fit, or as :func:`knn_graph` does.
    """
    _check(x_kept, "x_kept", k, memory_mb)
    if keep_mask.dtype != torch.bool or keep_mask.shape != (graph.num_nodes,):
        raise ValueError(
            f"keep_mask must be a bool [{graph.num_nodes}]; got {keep_mask.dtype} {tuple(keep_mask.shape)}"
        )
    _check_graph(graph, keep_mask.numel(), k)
    if int(keep_mask.sum()) != x_kept.size(0):
        raise ValueError(f"x_kept has {x_kept.size(0)} rows but keep_mask keeps {int(keep_mask.sum())}")
    new_id = torch.cat([torch.cumsum(keep_mask, 0) - 1, keep_mask.new_full((1,), -1, dtype=torch.int64)])
    index, score = graph.index[keep_mask, :k], graph.score[keep_mask, :k]
    lost = ~torch.cat([keep_mask, keep_mask.new_zeros(1)])[index].all(1)
    kept = KNNGraph(torch.where(lost[:, None], -1, new_id[index]), score)
    x = x_kept.to(torch.float32)
    search = Screen(x, k, screen, memory_mb)
    nodes = torch.arange(x.size(0), device=x.device)
    search.raise_bars(nodes[lost])
    search.multiply(nodes[lost], nodes, both=False)
    return _graph(search.best(_stored(kept, nodes, k)), x.size(0), k)


def _join_all(search: Screen, nodes: Tensor) -> None:
    """Every pair of ``nodes`` once: a strip against itself, then against all that follow."""
    step = search.strip
    for start in range(0, nodes.numel(), step):
        strip, rest = nodes[start : start + step], nodes[start + step :]
        search.multiply(strip, strip, both=False)
        search.multiply(strip, rest, both=True)


def _stored(graph: KNNGraph, nodes: Tensor, k: int) -> Pairs:
    index = graph.index[:, :k]
    row, place = (index >= 0).nonzero().unbind(1)
    return Pairs(nodes[row], index[row, place], graph.score[row, place])


def _graph(best: Pairs, num_nodes: int, k: int) -> KNNGraph:
    index = torch.full((num_nodes, k), -1, dtype=torch.int64, device=best.owner.device)
    score = torch.full((num_nodes, k), -torch.inf, device=best.owner.device)
    counts = torch.bincount(best.owner, minlength=num_nodes)
    place = torch.arange(best.owner.numel(), device=index.device)
    place = place - (torch.cumsum(counts, 0) - counts)[best.owner]
    index[best.owner, place], score[best.owner, place] = best.other, best.score
    return KNNGraph(index, score)


def _check(x: Tensor, name: str, k: int, memory_mb: int) -> None:
    check_vectors(name, x)
    check_positive("k", k)
    check_positive("memory_mb", memory_mb)


def _check_graph(graph: KNNGraph, num_nodes: int, k: int) -> None:
    if graph.num_nodes != num_nodes:
        raise ValueError(f"graph has {graph.num_nodes} nodes but {num_nodes} are given")
    if graph.index.size(1) < k:
        raise ValueError(f"k is {k} but graph holds {graph.index.size(1)} neighbours per node; build it anew with k")
