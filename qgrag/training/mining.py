"""Hard negatives: what an index finds for a query beside what answers it, likely answers left out."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from qgrag.errors import ConfigError
from qgrag.index.vectors import VectorIndex
from qgrag.progress import progress

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class MiningConfig:
    """How hard negatives are chosen.

    Args:
        count: negatives of a query, at most.
        depth: passages searched for a query, from which they are taken.
        margin: a passage is left out as a likely answer unless its cosine with the query is at least this much
            below that of the best passage that is known to answer.
        block: queries searched together; bounds memory.
    """

    count: int = 5
    depth: int = 100
    margin: float = 0.05
    block: int = 1024

    def __post_init__(self) -> None:
        if self.count < 1 or self.depth < self.count or self.block < 1:
            raise ConfigError(
                f"mining: count and block must be at least 1 and depth at least count, "
                f"not {self.count}, {self.block} and {self.depth}"
            )

    def peak_bytes(self, positives: int) -> int:
        """Memory that mining needs beside the vectors of the index and of the queries.

        Args:
            positives: most passages that answer one query.
        """
        score_and_id, own = 4 + 8, 1 + 8
        return self.block * self.depth * (score_and_id + own * max(1, positives))


def mine_hard_negatives(
    q: Tensor, passages: VectorIndex, positives: Sequence[Sequence[int]], document: Tensor, config: MiningConfig
) -> list[list[int]]:
    """The best-ranked passages that do not answer, for each query.

    No passage of a document that answers is taken, nor one that `config.margin` marks as a likely answer. States
    its peak memory before it starts.

    Args:
        q: float32 [Q, d], unit vectors of the queries.
        passages: searched.
        positives: of each query, rows of the passages that answer it, at least one.
        document: int64 [N], the document of each passage.
        config: see there.

    Returns:
        Rows of each query's negatives, hardest first; fewer than `config.count` where no more are safe.
    """
    most = max(map(len, positives), default=1)
    logger.warning(
        "mining hard negatives of %d queries among %d passages, %d queries at a time: %.1f MiB at most beside the "
        "index's vectors",
        len(q),
        len(document),
        config.block,
        config.peak_bytes(most) / 2**20,
    )
    found: list[list[int]] = []
    with progress("Mining hard negatives", len(q)) as bar:
        for start in range(0, len(q), config.block):
            part = slice(start, start + config.block)
            found += _mine_block(q[part], passages, positives[part], document, config)
            bar.advance(len(q[part]))
    return found


def _mine_block(
    q: Tensor, passages: VectorIndex, positives: Sequence[Sequence[int]], document: Tensor, config: MiningConfig
) -> list[list[int]]:
    most = max(map(len, positives))
    own = torch.tensor([[*rows, *[rows[0]] * (most - len(rows))] for rows in positives])
    best = (passages.vectors.cpu()[own] * q.cpu().unsqueeze(1)).sum(2).amax(1, keepdim=True)
    score, row = passages.search(q, config.depth)
    same_document = (document[row.clamp(min=0)].unsqueeze(2) == document[own].unsqueeze(1)).any(2)
    allowed = (row >= 0) & ~same_document & (score <= best - config.margin)
    taken = allowed & (allowed.cumsum(1) <= config.count)
    return [ids[keep].tolist() for ids, keep in zip(row, taken)]
