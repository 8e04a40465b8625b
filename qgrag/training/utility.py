"""How much a subgraph helps: how well the query, expanded with it, finds the gold. No language model is asked."""

from collections.abc import Sequence

import torch
from torch import Tensor

BLOCK = 2048


def retrieval_utility(
    q: Tensor,
    expanded: Tensor,
    ptr: Tensor,
    passages: Tensor,
    document: Tensor,
    gold: Sequence[Sequence[int]],
    k: int = 10,
) -> Tensor:
    """nDCG@k of the gold documents in the ranking that a subgraph leads to.

    A query joined with each triple of a subgraph is a search of its own (QMKGF, section 3.4); a chunk's score is the
    best that any of them gives it plus the query's own, a document's the best of its chunks. With G gold documents
    the utility is the sum of 1 / log2(1 + rank_g) over those with rank_g <= k, divided by
    sum_{i=1..min(G, k)} 1 / log2(1 + i), and at most 1. Documents of equal score share the better rank.

    Args:
        q: float32 [S, d], the query of each subgraph.
        expanded: float32 [M, d], unit vectors of the query joined with each triple.
        ptr: int64 [S + 1], the rows of each subgraph in `expanded`.
        passages: float32 [C, d], unit vectors of the chunks.
        document: int64 [C], the document of each chunk, from 0 without gaps.
        gold: of each subgraph the numbers of its question's gold documents, at least one, each once.
        k: documents that count.

    Returns:
        float32 [S], from 0 to 1; 0 for a subgraph without triples. Memory: `BLOCK` x C scores.
    """
    size = len(ptr) - 1
    documents = int(document.max()) + 1
    rewards = torch.zeros(size)
    start = 0
    while start < size:
        stop = start + 1
        while stop < size and int(ptr[stop + 1] - ptr[start]) <= BLOCK:
            stop += 1
        rows = expanded[int(ptr[start]) : int(ptr[stop])]
        owner = torch.repeat_interleave(ptr[start : stop + 1].diff())
        best = torch.full((stop - start, len(passages)), -torch.inf)
        scores = rows @ passages.T
        best.scatter_reduce_(0, owner.unsqueeze(1).expand_as(scores), scores, "amax")
        by_document = torch.full((stop - start, documents), -torch.inf)
        best += q[start:stop] @ passages.T
        by_document.scatter_reduce_(1, document.expand_as(best), best, "amax")
        rewards[start:stop] = _discounted_gain(by_document, gold[start:stop], k)
        start = stop
    return rewards


def _discounted_gain(scores: Tensor, gold: Sequence[Sequence[int]], k: int) -> Tensor:
    """nDCG@k of each row of [S, D]; 0 for a row of -inf."""
    counts = torch.tensor([len(names) for names in gold])
    row = torch.repeat_interleave(counts)
    column = torch.tensor([name for names in gold for name in names])
    rank = 1 + (scores[row] > scores[row, column].unsqueeze(1)).sum(1)
    gain = torch.zeros(len(scores)).index_add_(0, row, (rank <= k) / torch.log2(1 + rank.float()))
    ideal = (1 / torch.log2(torch.arange(k) + 2.0)).cumsum(0)
    return torch.where(scores.amax(1) == -torch.inf, 0, gain / ideal[counts.clamp(max=k) - 1]).clamp(max=1)
