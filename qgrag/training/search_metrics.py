"""How well vectors find the passages that answer: MRR, recall and nDCG while training."""

import torch
from torch import Tensor

BLOCK = 1024


def gold_ranks(q: Tensor, d: Tensor, query: Tensor, passage: Tensor) -> Tensor:
    """Rank of each gold passage among all passages for its query, by inner product.

    Args:
        q: float [Q, dim].
        d: float [P, dim].
        query: int64 [G], rising, the query of each gold pair.
        passage: int64 [G], its passage.

    Returns:
        int64 [G], from 1; among equal scores the earlier passage ranks first. Memory: `BLOCK` x P scores.
    """
    ranks = []
    for start in range(0, len(query), BLOCK):
        rows, gold = query[start : start + BLOCK], passage[start : start + BLOCK]
        scores = q[rows] @ d.T
        own = scores.gather(1, gold.unsqueeze(1))
        earlier = torch.arange(len(d), device=d.device) < gold.unsqueeze(1)
        ranks.append(1 + ((scores > own) | ((scores == own) & earlier)).sum(1))
    return torch.cat(ranks) if ranks else torch.empty(0, dtype=torch.long)


def search_metrics(ranks: Tensor, query: Tensor, ks: tuple[int, ...] = (1, 10)) -> dict[str, float]:
    """`mrr@k`, `recall@k` and `ndcg@k`, mean over the queries that have gold.

    Args:
        ranks: int64 [G], from `gold_ranks`.
        query: int64 [G], the query of each.
        ks: cut-offs.
    """
    _, owner = torch.unique(query, return_inverse=True)
    size = int(owner.max()) + 1
    ones = torch.ones(len(ranks), dtype=torch.float64)
    gold = torch.zeros(size, dtype=torch.float64).index_add_(0, owner.cpu(), ones)
    ranks, owner = ranks.cpu(), owner.cpu()
    discounts = 1 / torch.log2(torch.arange(max(ks), dtype=torch.float64) + 2)
    values = {}
    for k in ks:
        inside = ranks <= k
        first = torch.full((size,), torch.inf, dtype=torch.float64)
        first.scatter_reduce_(0, owner, ranks.double().masked_fill(~inside, torch.inf), "amin")
        found = torch.zeros(size, dtype=torch.float64).index_add_(0, owner, inside.double())
        gain = inside.double() / torch.log2(ranks.double() + 1)
        dcg = torch.zeros(size, dtype=torch.float64).index_add_(0, owner, gain)
        ideal = discounts[:k].cumsum(0)[gold.clamp(max=k).long() - 1]
        values[f"mrr@{k}"] = float((1 / first).mean())
        values[f"recall@{k}"] = float((found / gold).mean())
        values[f"ndcg@{k}"] = float((dcg / ideal).mean())
    return values
