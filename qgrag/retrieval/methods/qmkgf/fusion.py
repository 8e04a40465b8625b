"""Choosing and fusing the subgraphs of QMKGF (section 3.3)."""

from typing import Literal, NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import normalize

from qgrag.graph import Ragged
from qgrag.graph.segments import first_of_each, top_per_group
from qgrag.retrieval.methods.qmkgf.subgraphs import KINDS, Subgraphs
from qgrag.retrieval.steps.paired_dots import paired_dots

Strategy = Literal["reward", "cosine", "all", "top5"]
TOP_TRIPLES = 5


class Fusion(NamedTuple):
    """G_fusion of each of B queries.

    Args:
        scores: float32 [B, 3], of the subgraphs, -inf for one without triples.
        winner: int64 [B], the best of them; -1 where all three are empty or the strategy takes none before
            others.
        threshold: float32 [B], tau.
        triples: B rows of the graph's triples, the closest to the query first.
        vectors: float32 [N, d], unit vectors of `triples.values`.
        similarity: float32 [N], of each of them to the query.
        added: bool [N], whether each came from a subgraph other than the winner.
    """

    scores: Tensor
    winner: Tensor
    threshold: Tensor
    triples: Ragged
    vectors: Tensor
    similarity: Tensor
    added: Tensor


def fuse(
    subgraphs: Subgraphs, triple_vectors: Tensor, queries: Tensor, scores: Tensor | None, strategy: Strategy
) -> Fusion:
    """Equations 9 to 13, and the other strategies of table 7.

    Args:
        subgraphs: of B queries.
        triple_vectors: float32 [M, d], unit vectors of `subgraphs.triples`.
        queries: float32 [B, d].
        scores: float32 [B, 3] of a reward model; None takes the cosine of the subgraph's mean vector with the
            query.
        strategy: which triples are taken.
    """
    size, kinds = subgraphs.num_queries, len(KINDS)
    owner = subgraphs.owner()
    query, kind = owner // kinds, owner % kinds
    similarity = paired_dots(queries, query, triple_vectors, torch.arange(len(triple_vectors), device=owner.device))
    mean = queries.new_zeros(size * kinds, queries.shape[1]).index_add_(0, owner, triple_vectors)
    cosine = (normalize(mean, dim=1).view(size, kinds, -1) * queries.unsqueeze(1)).sum(2)
    empty = (subgraphs.ptr.diff() == 0).view(size, kinds)
    scores = (cosine if scores is None else scores).masked_fill(empty, -torch.inf)
    winner = scores.argmax(1).masked_fill(empty.all(1), -1)
    threshold = cosine.gather(1, winner.clamp(min=0).unsqueeze(1)).squeeze(1)
    if strategy == "all":
        taken = torch.ones_like(owner, dtype=torch.bool)
    elif strategy == "top5":
        taken = torch.zeros_like(owner, dtype=torch.bool)
        taken[top_per_group(owner, similarity, TOP_TRIPLES)] = True
    else:
        taken = (kind == winner[query]) | (similarity >= threshold[query])
    own = kind == winner[query]
    order = taken.nonzero()[:, 0]
    order = order[torch.argsort(own[order].to(torch.int8), descending=True, stable=True)]
    key = query[order] * (int(subgraphs.triples.max()) + 1 if len(order) else 1) + subgraphs.triples[order]
    once = order[first_of_each(key)]
    best = once[top_per_group(query[once], similarity[once], max(1, len(once)))]
    if strategy in ("all", "top5"):
        winner = torch.full_like(winner, -1)
    triples = Ragged.from_batch(subgraphs.triples[best], query[best], size)
    return Fusion(scores, winner, threshold, triples, triple_vectors[best], similarity[best], ~own[best])
