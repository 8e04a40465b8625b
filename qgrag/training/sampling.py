"""Batches in an order fixed by seed and epoch, shared out over processes, and resumable in mid-epoch."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
from torch.utils.data import DataLoader, Sampler

from qgrag.errors import InputError


class Draw(NamedTuple):
    """One example of the training data, drawn in an epoch."""

    epoch: int
    example: int


class ShardedBatchSampler(Sampler[list[Draw]]):
    """Each epoch a new permutation, cut into global batches, of which this process gets its part.

    Process r of W takes examples [r * batch_size, (r + 1) * batch_size) of each global batch of W * batch_size, so
    that W processes see together what one process with the whole batch sees. What does not fill a global batch at
    the end of an epoch is left out; the next epoch's order brings it in.

    Args:
        size: number of examples.
        batch_size: examples a batch of this process.
        seed: fixes the order.
        rank: r.
        world_size: W.

    Raises:
        InputError: fewer examples than one global batch.
    """

    def __init__(self, size: int, batch_size: int, seed: int, rank: int = 0, world_size: int = 1) -> None:
        self.size, self.batch_size, self.seed = size, batch_size, seed
        self.rank, self.world_size = rank, world_size
        self.epoch = 0
        self.consumed = 0
        self._resume: tuple[int, int] | None = None
        if batch_size < 1 or size < batch_size * world_size:
            raise InputError(
                f"{size} training examples do not fill one batch of {batch_size} on {world_size} process(es); lower "
                "data.batch_size, or give more examples"
            )

    def __len__(self) -> int:
        return self.size // (self.batch_size * self.world_size)

    def set_epoch(self, epoch: int) -> None:
        if epoch != self.epoch:
            self.consumed = 0
        self.epoch = epoch

    def __iter__(self) -> Iterator[list[Draw]]:
        start = self._resume[1] if self._resume and self._resume[0] == self.epoch else 0
        self._resume = None
        self.consumed = start
        order = torch.randperm(self.size, generator=torch.Generator().manual_seed(self.seed * 1_000_003 + self.epoch))
        step = self.batch_size * self.world_size
        for batch in range(start, len(self)):
            first = batch * step + self.rank * self.batch_size
            yield [Draw(self.epoch, i) for i in order[first : first + self.batch_size].tolist()]

    def state_dict(self) -> dict[str, int]:
        return {"epoch": self.epoch, "consumed": self.consumed}

    def load_state_dict(self, state: dict[str, int]) -> None:
        self._resume = (state["epoch"], state["consumed"])


class ResumableLoader(DataLoader[Any]):
    """A DataLoader over a `ShardedBatchSampler` whose state counts the batches that training took, not those that
    its workers fetched ahead. Lightning keeps the state in its checkpoints."""

    batch_sampler: ShardedBatchSampler

    def __iter__(self) -> Iterator[Any]:  # type: ignore[override]
        for batch in super().__iter__():
            self.batch_sampler.consumed += 1
            yield batch

    def state_dict(self) -> dict[str, int]:
        return self.batch_sampler.state_dict()

    def load_state_dict(self, state: dict[str, int]) -> None:
        self.batch_sampler.load_state_dict(state)
