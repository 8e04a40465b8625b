"""Hard negatives: what an index finds for a query beside what answers it, likely answers left out."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

import torch
from torch import Tensor

from qgrag.errors import ConfigError
from qgrag.index.vectors import VectorIndex
from qgrag.progress import progress

FOUND_BYTES = 64
"""Of one passage found for one query: score, row and document, the key that tells answers, and what compares them."""

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

    def peak_bytes(self, positives: int, passages: VectorIndex) -> int:
        """Memory that mining needs beside the vectors of the index and of the queries, at most.

        Args:
            positives: most passages that answer the queries of one block.
            passages: what is searched; torch scores all of them at once, FAISS 1024 at a time.
        """
        size, dimension = passages.vectors.shape
        scored = size if passages.backend == "torch" else min(size, 1024)
        found = self.block * min(self.depth, size) * FOUND_BYTES
        return found + 2 * 4 * dimension * positives + 4 * self.block * scored


def mine_hard_negatives(
    q: Tensor,
    passages: VectorIndex,
    positives: Sequence[Sequence[int]],
    document: Tensor,
    config: MiningConfig,
    usable: Tensor | None = None,
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
        usable: bool [N], the passages that may be taken; None for all.

    Returns:
        Rows of each query's negatives, hardest first; fewer than `config.count` where no more are safe.
    """
    blocks = [slice(start, start + config.block) for start in range(0, len(q), config.block)]
    most = max((sum(map(len, positives[part])) for part in blocks), default=0)
    logger.warning(
        "mining hard negatives of %d queries among %d passages, %d queries at a time: %.1f MiB at most beside the "
        "index's vectors",
        len(q),
        len(document),
        config.block,
        config.peak_bytes(most, passages) / 2**20,
    )
    found: list[list[int]] = []
    with progress("Mining hard negatives", len(q)) as bar:
        for part in blocks:
            found += _mine_block(q[part], passages, positives[part], document, config, usable)
            bar.advance(len(q[part]))
    return found


def _mine_block(
    q: Tensor,
    passages: VectorIndex,
    positives: Sequence[Sequence[int]],
    document: Tensor,
    config: MiningConfig,
    usable: Tensor | None,
) -> list[list[int]]:
    own = torch.tensor(list(chain.from_iterable(positives)))
    owner = torch.repeat_interleave(torch.tensor([len(rows) for rows in positives]))
    vectors = passages.vectors
    cosine = torch.linalg.vecdot(vectors[own.to(vectors.device)].cpu(), q[owner])
    best = q.new_full((len(q),), -torch.inf).scatter_reduce_(0, owner, cosine, "amax")
    score, row = passages.search(q, config.depth)
    answers = _pair_key(owner, document[own], document)
    found = _pair_key(torch.arange(len(q)).unsqueeze(1), document[row.clamp(min=0)], document)
    allowed = (row >= 0) & ~_among(found, answers.sort().values) & (score <= (best - config.margin).unsqueeze(1))
    if usable is not None:
        allowed &= usable[row]
    taken = allowed & (allowed.cumsum(1) <= config.count)
    return [ids[keep].tolist() for ids, keep in zip(row, taken)]


def _pair_key(query: Tensor, document: Tensor, documents: Tensor) -> Tensor:
    """One number for a query and a document, int64."""
    return query * (documents.max() + 1) + document


def _among(values: Tensor, known: Tensor) -> Tensor:
    """Which values are in `known`, int64 [K] in rising order."""
    return known[torch.searchsorted(known, values).clamp(max=len(known) - 1)] == values
