"""The candidates of a batch of questions: chunks that any member found, with the place that each member gave them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from qgrag.graph.segments import rank_within
from qgrag.retrieval.base import Ranking

FUSION_CONSTANT = 2.0
"""k of the reciprocal ranks by which candidates are ordered before they are scored."""


@dataclass(frozen=True)
class Pool:
    """K candidates of each of B questions, ordered by the sum of their reciprocal ranks.

    Args:
        chunks: int64 [B, K], rows of the index's chunks, each once per question, padded with -1 at the end; K is 1 at
            least, in a batch for which nothing was found too.
        place: int64 [B, K, M], place of each candidate in each member's ranking from 0; -1 where it is not there.
        score: float32 [B, K, M], the score that the member gave it; 0 where it is not there.
        found: float32 [B, M], number of chunks that each member found.
        fallback: bool [B, M], whether the member had nothing of its own and took dense retrieval's chunks.
        present: bool [M], whether the index holds what the member needs.
    """

    chunks: Tensor
    place: Tensor
    score: Tensor
    found: Tensor
    fallback: Tensor
    present: Tensor

    def rows(self, rows: slice) -> "Pool":
        """The pools of some of the questions."""
        return replace(
            self,
            chunks=self.chunks[rows],
            place=self.place[rows],
            score=self.score[rows],
            found=self.found[rows],
            fallback=self.fallback[rows],
        )

    @property
    def fused(self) -> Tensor:
        """Sum of each candidate's reciprocal ranks (Cormack et al. 2009), float32 [B, K]."""
        return (1 / (FUSION_CONSTANT + 1 + self.place.float())).masked_fill(self.place < 0, 0).sum(-1)

    @property
    def mask(self) -> Tensor:
        """Whether a column holds a candidate, bool [B, K]."""
        return self.chunks >= 0


MEMBERS = ("bm25", "naive", "qcg", "dual", "ppr")
"""The retrievers whose rankings make a pool. `fg` and `qmkgf` take most of the time of a pool that has them too."""

DEPTH, SIZE = 20, 64
"""Chunks taken of each member, and candidates per pool, at most."""


def gather_pool(rankings: Sequence[Ranking | None], num_queries: int, num_chunks: int, size: int) -> Pool:
    """Joins the members' rankings.

    Args:
        rankings: of M members, each over the same B questions; None for a member that the index cannot serve. The
            first that is there decides on the device.
        num_queries: B.
        num_chunks: number of chunks of the index.
        size: K, most candidates per question.
    """
    device = next(ranking.chunks.device for ranking in rankings if ranking is not None)
    query, chunk, member, place, score = _entries(rankings, device)
    key, owner = torch.unique(query * num_chunks + chunk, return_inverse=True)
    fused = torch.zeros(len(key), device=device)
    fused.index_add_(0, owner, 1 / (FUSION_CONSTANT + 1 + place.float()))
    row = key // num_chunks
    column = rank_within(row, fused, num_queries)
    width = min(size, int(column.max()) + 1 if len(key) else 1)
    kept = column < width
    chunks = torch.full((num_queries, width), -1, dtype=torch.long, device=device)
    chunks[row[kept], column[kept]] = key[kept] % num_chunks
    members = len(rankings)
    places = torch.full((num_queries, width, members), -1, dtype=torch.long, device=device)
    scores = torch.zeros(num_queries, width, members, device=device)
    inside = kept[owner]
    at = (query[inside], column[owner[inside]], member[inside])
    places[at], scores[at] = place[inside], score[inside]
    found = torch.zeros(num_queries, members, device=device)
    found.index_put_((query, member), torch.ones(len(query), device=device), accumulate=True)
    fallback = torch.tensor(
        [[_fell_back(ranking, b) for ranking in rankings] for b in range(num_queries)], dtype=torch.bool, device=device
    ).view(num_queries, members)
    present = torch.tensor([ranking is not None for ranking in rankings], device=device)
    return Pool(chunks, places, scores, found, fallback, present)


def _entries(rankings: Sequence[Ranking | None], device: torch.device) -> tuple[Tensor, ...]:
    """Question, chunk, member, place and score of every chunk that a member found."""
    parts = []
    for member, ranking in enumerate(rankings):
        if ranking is None:
            continue
        query, place = (ranking.chunks >= 0).nonzero().unbind(1)
        parts.append(
            (
                query,
                ranking.chunks[query, place],
                torch.full_like(query, member),
                place,
                ranking.scores[query, place].float(),
            )
        )
    return tuple(torch.cat([column.to(device) for column in columns]) for columns in zip(*parts, strict=True))


def _fell_back(ranking: Ranking | None, row: int) -> bool:
    return ranking is not None and bool(ranking.evidence) and ranking.evidence[row].fallback is not None
