"""Checks of arguments shared by the kernels: each names the argument, the value and the rule."""

from numbers import Integral

import torch
from torch import Tensor

from qgrag.graph.ragged import Ragged

LONGEST = 1e18
"""Norm of a vector at most: inner products of longer ones come near the largest float32."""


def check_index(name: str, values: Tensor, bound: int) -> None:
    """Every value must be an integer in ``[0, bound)``.

    Raises:
        ValueError: naming the argument, the first value outside and its place.
    """
    if values.is_floating_point() or values.is_complex() or values.dtype == torch.bool:
        raise ValueError(f"{name} must hold integers; got dtype {values.dtype}")
    if values.numel() == 0:
        return
    low, high = values.aminmax()
    if int(low) >= 0 and int(high) < bound:
        return
    place = int(((values < 0) | (values >= bound)).flatten().nonzero()[0])
    value = int(values.flatten()[place])
    raise ValueError(f"{name} holds {value} at place {place}; ids must be at least 0 and less than {bound}")


def check_weights(name: str, values: Tensor) -> None:
    """Every value must be finite and not negative.

    Raises:
        ValueError: naming the argument, the first bad value and its place.
    """
    if values.numel() == 0:
        return
    low, high = values.aminmax()
    if low >= 0 and torch.isfinite(high):
        return
    place = int((~torch.isfinite(values) | (values < 0)).flatten().nonzero()[0])
    value = float(values.flatten()[place])
    raise ValueError(f"{name} holds {value} at place {place}; weights must be finite and not negative")


def check_vectors(name: str, x: Tensor) -> None:
    """``x`` must be a floating ``[N, d]`` without NaN or infinity, whose inner products fit float32.

    Raises:
        ValueError: naming the argument and its shape, dtype or first bad row.
    """
    if x.dim() != 2 or not x.is_floating_point():
        raise ValueError(f"{name} must be a floating tensor [N, d]; got shape {tuple(x.shape)}, dtype {x.dtype}")
    if x.numel() == 0:
        return
    norm = torch.linalg.vector_norm(x, dim=1, dtype=torch.promote_types(x.dtype, torch.float32))
    if norm.max() <= LONGEST:
        return
    row = int((~(norm <= LONGEST)).nonzero()[0])
    if not torch.isfinite(x[row]).all():
        raise ValueError(f"{name} holds NaN or infinity in row {row}; embed that row again or leave it out")
    raise ValueError(f"{name} holds a vector of norm above {LONGEST:g} in row {row}; scale the vectors to unit norm")


def check_positive(name: str, value: int, minimum: int = 1) -> None:
    """``value`` must be a whole number of at least ``minimum``.

    Raises:
        ValueError: naming the argument and the value.
    """
    if not isinstance(value, Integral):
        raise ValueError(f"{name} must be a whole number; got {value!r}")
    if value < minimum:
        raise ValueError(f"{name} must be at least {minimum}; got {value}")


def check_seeds(name: str, seeds: Ragged, num_nodes: int, device: torch.device) -> None:
    """Seeds must be node ids and lie where the graph lies.

    Raises:
        ValueError: naming the argument and the first seed outside, or the two devices.
    """
    if seeds.device != device:
        raise ValueError(f"{name} lies on {seeds.device} but the graph on {device}; move one with .to()")
    check_index(name, seeds.values, num_nodes)
