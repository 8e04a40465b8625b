"""Approximate nearest neighbours: inverted lists, or FAISS's navigable small world."""

import torch
from torch import Tensor

from qgrag.graph.blocks import concurrent_blocks, run_blocks
from qgrag.graph.checks import check_positive
from qgrag.graph.knn_exact import STRIP, Pairs, inner_products
from qgrag.graph.precision import screening_dtype
from qgrag.graph.segments import best_of_rows

LIST_LENGTH = 100
"""Members of an inverted list on average; shorter lists cost more to choose, longer ones more to look into."""

HNSW_LINKS, HNSW_BUILD, HNSW_SEARCH = 32, 40, 64
"""Links a node, and how many candidates are kept while building and while searching."""


def ivf_neighbours(x: Tensor, k: int, lists: int | None, probes: int, memory_mb: int) -> tuple[Tensor, Tensor]:
    """Ids and scores ``[N, k]`` of the k best of each vector among the members of the ``probes`` lists nearest to it.

    Inverted files (Sivic and Zisserman 2003; Jegou et al. 2011): a list is one float32 product between its members
    and all vectors that look into it. Lists are chosen in the screening dtype. O(N (lists + N probes / lists) d)
    time; beside the answer and a copy of ``x`` in that dtype at most ``memory_mb``.

    Raises:
        ValueError: if ``lists`` or ``probes`` is below 1, or there are more probes than lists.
    """
    n = x.size(0)
    if lists is None:
        lists = max(1, n // LIST_LENGTH)
        probes = min(probes, lists)
    check_positive("lists", lists)
    check_positive("probes", probes)
    if probes > lists or lists > max(1, n):
        raise ValueError(f"probes must be at most lists and lists at most N; got {probes}, {lists} and {n}")
    rounded = x.to(screening_dtype(x.device.type))
    centres = _spherical_kmeans(rounded, lists)
    nearest = torch.cat(
        run_blocks(lambda part: (part @ centres.t()).float().topk(probes).indices, rounded.split(STRIP // 4), x.device)
    )
    index = torch.full((n, k), -1, dtype=torch.int64, device=x.device)
    score = torch.full((n, k), -torch.inf, device=x.device)
    held = memory_mb * 2**20 // 16 // concurrent_blocks(x.device)
    members = _by_list(nearest[:, 0], lists)

    def look(block: tuple[Tensor, Tensor]) -> None:
        """Joins the best of a list's members to what its visitors have."""
        visitors, members = block
        for rows in visitors.split(max(1, held // max(1, members.numel()))):
            product = x.index_select(0, rows) @ x.index_select(0, members).t()
            product.masked_fill_(rows[:, None] == members, -torch.inf)
            better = (product.amax(1) > score[rows, -1]).nonzero().squeeze(1)
            rows, product = rows.index_select(0, better), product.index_select(0, better)
            best = torch.cat([score.index_select(0, rows), product], 1).topk(k)
            other = torch.cat([index.index_select(0, rows), members.expand(rows.numel(), -1)], 1)
            score[rows], index[rows] = best.values, other.gather(1, best.indices)

    for rank in range(probes):
        blocks = zip(_by_list(nearest[:, rank], lists), members, strict=True)
        run_blocks(look, [(visitors, own) for visitors, own in blocks if own.numel()], x.device)
    index.masked_fill_(torch.isinf(score), -1)
    by_id = torch.sort(index, dim=1)
    by_score = torch.sort(score.gather(1, by_id.indices), dim=1, descending=True, stable=True)
    return by_id.values.gather(1, by_score.indices), by_score.values


def _by_list(list_of: Tensor, lists: int) -> tuple[Tensor, ...]:
    """The vectors of each list, ascending."""
    return torch.argsort(list_of, stable=True).split(torch.bincount(list_of, minlength=lists).tolist())


def _spherical_kmeans(x: Tensor, lists: int, *, rounds: int = 2, seed: int = 0) -> Tensor:
    """Unit centres ``[lists, d]`` of a sample of at most 16 vectors a list (Dhillon and Modha 2001)."""
    generator = torch.Generator().manual_seed(seed)
    sample = x[torch.randperm(x.size(0), generator=generator)[: 16 * lists].to(x.device)]
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
