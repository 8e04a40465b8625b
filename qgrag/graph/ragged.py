"""Ragged batches of integers, stored as one flat tensor and the row boundaries."""

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True, eq=False)
class Ragged:
    """A batch of ``B`` rows of integers of any length.

    Attributes:
        values: int64 ``[M]``, the rows one after another.
        ptr: int64 ``[B + 1]``, row ``b`` is ``values[ptr[b]:ptr[b + 1]]``; ``ptr[0]`` is 0 and ``ptr[B]`` is ``M``.

    Raises:
        ValueError: if the shapes do not fit, or ``ptr`` does not rise from 0 to ``M``.

    Example:
        >>> rows = Ragged.from_lists([[4, 2], [], [7]])
        >>> rows.batch().tolist(), rows.counts().tolist()
        ([0, 0, 2], [2, 0, 1])
    """

    values: Tensor
    ptr: Tensor

    def __post_init__(self) -> None:
        if self.values.dim() != 1 or self.ptr.dim() != 1 or self.ptr.numel() == 0:
            raise ValueError(
                f"values must be [M] and ptr [B + 1]; got shapes {tuple(self.values.shape)} and {tuple(self.ptr.shape)}"
            )
        if bool((self.ptr[0] != 0) | (self.ptr[-1] != self.values.numel()) | (self.ptr.diff() < 0).any()):
            raise ValueError(f"ptr must rise from 0 to {self.values.numel()}, the number of values; got {self.ptr}")

    @classmethod
    def from_lists(cls, rows: Iterable[Sequence[int]], device: torch.device | str | None = None) -> "Ragged":
        """Packs Python lists, one per row."""
        lists = [list(row) for row in rows]
        values = torch.tensor([value for row in lists for value in row], dtype=torch.int64, device=device)
        counts = torch.tensor([len(row) for row in lists], dtype=torch.int64, device=device)
        return cls(values, counts_to_ptr(counts))

    @classmethod
    def from_batch(cls, values: Tensor, batch: Tensor, num_rows: int) -> "Ragged":
        """Packs values with the row id of each, which must not decrease."""
        return cls(values, counts_to_ptr(torch.bincount(batch, minlength=num_rows)))

    @property
    def num_rows(self) -> int:
        """Number of rows ``B``."""
        return self.ptr.numel() - 1

    @property
    def device(self) -> torch.device:
        """Where the values lie."""
        return self.values.device

    def counts(self) -> Tensor:
        """Length of each row, int64 ``[B]``."""
        return self.ptr.diff()

    def batch(self) -> Tensor:
        """Row id of each value, int64 ``[M]`` (PyG's ``batch`` vector)."""
        return torch.repeat_interleave(self.counts(), output_size=self.values.numel())

    def row(self, b: int) -> Tensor:
        """The values of row ``b``."""
        return self.values[int(self.ptr[b]) : int(self.ptr[b + 1])]

    def gather(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        """The values of the given rows, one after another.

        Args:
            rows: int64 ``[R]``, with repeats or without, in any order.

        Returns:
            For each value its position in ``rows`` and itself: two int64 ``[sum of the rows' lengths]``.
        """
        owner, slot = ragged_slots(self.ptr, rows)
        return owner, self.values[slot]

    def rows(self, start: int, stop: int) -> "Ragged":
        """The rows ``start`` to ``stop - 1`` as a batch of their own."""
        ptr = self.ptr[start : stop + 1]
        return Ragged(self.values[int(ptr[0]) : int(ptr[-1])], ptr - ptr[0])

    def to_lists(self) -> list[list[int]]:
        """The rows as Python lists."""
        values, ptr = self.values.tolist(), self.ptr.tolist()
        return [values[start:stop] for start, stop in itertools.pairwise(ptr)]

    def to(self, device: torch.device | str) -> "Ragged":
        """The same batch on another device."""
        return Ragged(self.values.to(device), self.ptr.to(device))


def counts_to_ptr(counts: Tensor) -> Tensor:
    """Row boundaries ``[B + 1]`` from row lengths ``[B]``."""
    ptr = torch.zeros(counts.numel() + 1, dtype=torch.int64, device=counts.device)
    torch.cumsum(counts, 0, out=ptr[1:])
    return ptr


def ragged_slots(ptr: Tensor, rows: Tensor) -> tuple[Tensor, Tensor]:
    """Position in ``rows`` and place in the flat values, of every value of the given rows: two int64 ``[T]``.

    ``ptr`` is int64 ``[B + 1]``, ``rows`` int64 ``[R]`` with repeats or without.
    """
    start = ptr.index_select(0, rows)
    counts = ptr.index_select(0, rows + 1) - start
    owner = torch.repeat_interleave(counts)
    shift = start - (torch.cumsum(counts, 0) - counts)
    return owner, torch.arange(owner.numel(), device=ptr.device).add_(shift.index_select(0, owner))


def ragged_arange(counts: Tensor) -> tuple[Tensor, Tensor]:
    """Row id and place within the row, for rows of the given lengths: two int64 ``[sum(counts)]``."""
    starts = torch.cumsum(counts, 0) - counts
    row = torch.repeat_interleave(counts)
    return row, torch.arange(row.numel(), device=counts.device).sub_(starts.index_select(0, row))


def pieces(counts: Tensor, budget: int) -> list[tuple[int, int]]:
    """Cuts ``[0, len(counts))`` into ranges whose counts sum to about ``budget``; one item may exceed it alone."""
    total = torch.cumsum(counts, 0)
    if counts.numel() == 0 or int(total[-1]) <= budget:
        return [(0, counts.numel())]
    part = (total - counts) // budget
    ends = torch.cat([(part.diff() > 0).nonzero().squeeze(1) + 1, part.new_tensor([counts.numel()])]).tolist()
    return list(zip([0, *ends[:-1]], ends, strict=True))
