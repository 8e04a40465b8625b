"""Approximate nearest neighbours: inverted lists for the screened product, or FAISS's navigable small world."""

import torch
from torch import Tensor

from qgrag.graph.checks import check_positive
from qgrag.graph.knn_exact import STRIP, Pairs, Screen, inner_products
from qgrag.graph.top import best_of_rows

HNSW_LINKS, HNSW_BUILD, HNSW_SEARCH = 32, 40, 64
"""Links a node, and how many candidates are kept while building and while searching."""


def ivf_pairs(search: Screen, lists: int | None, probes: int) -> Pairs:
    """The k best of each vector among the members of the ``probes`` lists nearest to it.

    Inverted files (Sivic and Zisserman 2003; Jegou et al. 2011) over the screened product: every list is one
    matrix product between its members and all vectors that look into it. O(N probes N / lists d) time.

    Raises:
        ValueError: if ``lists`` or ``probes`` is below 1, or there are more probes than lists.
    """
    n = search.x.size(0)
    if lists is None:
        lists = max(1, n // 256)
        probes = min(probes, lists)
    check_positive("lists", lists)
    check_positive("probes", probes)
    if probes > lists or lists > max(1, n):
        raise ValueError(f"probes must be at most lists and lists at most N; got {probes}, {lists} and {n}")
    centres = _spherical_kmeans(search.rounded, lists)
    nearest = torch.cat([(part @ centres.t()).topk(probes, dim=1).indices for part in search.rounded.split(STRIP)])
    search.raise_bars(torch.arange(n, device=nearest.device), rounds=1)
    looking = torch.argsort(nearest.flatten(), stable=True)
    ends = torch.bincount(nearest.flatten(), minlength=lists).cumsum(0).tolist()
    members = torch.argsort(nearest[:, 0], stable=True)
    member_ends = torch.bincount(nearest[:, 0], minlength=lists).cumsum(0).tolist()
    for start, stop, first, last in zip([0, *ends], ends, [0, *member_ends], member_ends, strict=False):
        if first < last:
            search.multiply(looking[start:stop] // probes, members[first:last], both=False)
    return search.best()


def _spherical_kmeans(x: Tensor, lists: int, *, rounds: int = 5, seed: int = 0) -> Tensor:
    """Unit centres ``[lists, d]`` of a sample of at most 64 vectors a list (Dhillon and Modha 2001)."""
    generator = torch.Generator().manual_seed(seed)
    sample = x[torch.randperm(x.size(0), generator=generator)[: 64 * lists].to(x.device)]
    centres = sample[:lists]
    for _ in range(rounds):
        nearest = torch.cat([(part @ centres.t()).argmax(1) for part in sample.split(STRIP)])
        total = torch.zeros(lists, x.size(1), device=x.device).index_add_(0, nearest, sample.float())
        met = total.norm(dim=1, keepdim=True)
        centres = torch.where(met > 0, total / met.clamp_min(1e-12), centres.float()).to(x.dtype)
    return centres


def hnsw_pairs(x: Tensor, k: int, memory_mb: int) -> Pairs:
    """The k best of each vector as ``faiss.IndexHNSWFlat`` finds them (Malkov and Yashunin 2018), rescored.

    Raises:
        ValueError: for vectors on a CUDA device, which this index cannot read.
    """
    if x.device.type != "cpu":
        raise ValueError(f'x lies on {x.device}, but method "hnsw" runs on CPU only; use "exact" or "ivf", or x.cpu()')
    import faiss

    index = faiss.IndexHNSWFlat(x.size(1), HNSW_LINKS, faiss.METRIC_INNER_PRODUCT)
    index.hnsw.efConstruction = HNSW_BUILD
    index.hnsw.efSearch = max(HNSW_SEARCH, 2 * k)
    vectors = x.contiguous().numpy()
    index.add(vectors)
    found = torch.from_numpy(index.search(vectors, min(k + 1, x.size(0)))[1])
    owner = torch.arange(x.size(0))[:, None].expand_as(found)
    real = (found >= 0) & (found != owner)
    owner, other = owner[real], found[real]
    score = inner_products(x, owner, other, memory_mb)
    kept = best_of_rows(owner, other, score, k)
    return Pairs(owner[kept], other[kept], score[kept])
