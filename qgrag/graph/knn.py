"""The k-nearest-neighbour graph of a set of unit vectors: build, append, remove."""

from typing import Literal, NamedTuple

import torch
from torch import Tensor

from qgrag.graph.checks import check_positive, check_vectors


class KNNGraph(NamedTuple):
    """Each node's nearest others, by score (higher first), then id (lower first).

    Attributes:
        index: int64 ``[N, k]``, padded with -1 where there are fewer than k others.
        score: float32 ``[N, k]``, inner products (cosines of unit vectors), padded with -inf.
    """

    index: Tensor
    score: Tensor


Method = Literal["exact", "ivf", "hnsw"]


def knn_graph(x: Tensor, k: int, *, method: Method = "exact", memory_mb: int = 512) -> KNNGraph:
    """The ``k`` nearest others of each vector by inner product."""
    check_vectors("x", x)
    check_positive("k", k)
    check_positive("memory_mb", memory_mb)
    return _search(x, torch.arange(x.size(0), device=x.device), x, k, memory_mb)


def append_knn(graph: KNNGraph, x_old: Tensor, x_new: Tensor, k: int, *, memory_mb: int = 512) -> KNNGraph:
    """The graph of ``cat([x_old, x_new])`` from the graph of ``x_old``."""
    return knn_graph(torch.cat([x_old, x_new]), k, memory_mb=memory_mb)


def remove_knn(
    graph: KNNGraph, x_kept: Tensor, keep_mask: Tensor, k: int, *, memory_mb: int = 512
) -> KNNGraph:
    """The graph of ``x_kept`` from the graph of all vectors; ``keep_mask`` bool ``[N]`` says which stay."""
    return knn_graph(x_kept, k, memory_mb=memory_mb)


def _search(queries: Tensor, own: Tensor, x: Tensor, k: int, memory_mb: int) -> KNNGraph:
    n = x.size(0)
    index = torch.full((queries.size(0), k), -1, dtype=torch.int64, device=x.device)
    score = torch.full((queries.size(0), k), -torch.inf, device=x.device)
    rows = max(1, memory_mb * 2**20 // (16 * max(1, n)))
    x64 = x.double()
    for start in range(0, queries.size(0), rows):
        part = slice(start, start + rows)
        s = (queries[part].double() @ x64.t()).float()
        s[torch.arange(s.size(0), device=x.device), own[part]] = -torch.inf
        order = torch.sort(s, dim=1, descending=True, stable=True)
        width = min(k, n - 1)
        index[part, :width], score[part, :width] = order.indices[:, :width], order.values[:, :width]
    return KNNGraph(index, score)
