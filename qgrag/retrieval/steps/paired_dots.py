"""Inner products of many pairs of rows in bounded memory."""

import torch
from torch import Tensor

MEMORY_MB = 64
DENSE = 32
"""Products of a matrix that cost as much as gathering the rows of one pair, about."""


def paired_dots(one: Tensor, i: Tensor, other: Tensor, j: Tensor, *, memory_mb: int = MEMORY_MB) -> Tensor:
    """one[i[m]] . other[j[m]] for each m, float32 [M], on the device of `one`.

    Few pairs have their rows gathered, in pieces. Where a hub makes them more than the rows of both sides bear,
    the products of all rows are made, block by block, and the pairs read off.
    O(min(M, A B / 32) d) time.

    Args:
        one: float32 [A, d].
        i: int64 [M], below A.
        other: float32 [B, d], on any device.
        j: int64 [M], below B.
        memory_mb: bound of what is gathered or multiplied at once.
    """
    floats = memory_mb * 2**20 // 4
    if len(one) * len(other) < DENSE * len(i):
        return _from_products(one, i, other, j, max(1, floats // len(other)))
    step = max(1, floats // (2 * max(1, one.shape[1])))
    parts = [
        (one[i[start : start + step]] * other[j[start : start + step].to(other.device)].to(one.device)).sum(1)
        for start in range(0, len(i), step)
    ]
    return torch.cat(parts) if parts else one.new_empty(0)


def _from_products(one: Tensor, i: Tensor, other: Tensor, j: Tensor, rows: int) -> Tensor:
    out = one.new_empty(len(i))
    for start in range(0, len(one), rows):
        at = ((i >= start) & (i < start + rows)).nonzero()[:, 0]
        products = one[start : start + rows].to(other.device) @ other.T
        out[at] = products[(i[at] - start).to(other.device), j[at].to(other.device)].to(one.device)
    return out
