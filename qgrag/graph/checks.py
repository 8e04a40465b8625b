"""Checks of arguments shared by the kernels: each names the argument, the value and the rule."""

import torch
from torch import Tensor

from qgrag.graph.ragged import Ragged


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
    """``x`` must be a floating ``[N, d]`` without NaN or infinity.

    Raises:
        ValueError: naming the argument and its shape, dtype or first bad row.
    """
    if x.dim() != 2 or not x.is_floating_point():
        raise ValueError(f"{name} must be a floating tensor [N, d]; got shape {tuple(x.shape)}, dtype {x.dtype}")
    if x.numel() and not torch.isfinite(x.sum()):
        bad = (~torch.isfinite(x)).any(dim=1).nonzero()
        if bad.numel():
            raise ValueError(f"{name} holds NaN or infinity in row {int(bad[0])}; embed that row again or leave it out")


def check_positive(name: str, value: float, minimum: float = 1) -> None:
    """``value`` must be at least ``minimum``.

    Raises:
        ValueError: naming the argument and the value.
    """
    if not value >= minimum:
        raise ValueError(f"{name} must be at least {minimum}; got {value}")


def check_seeds(seeds: Ragged, num_nodes: int, device: torch.device) -> None:
    """Seeds must be node ids and lie where the graph lies.

    Raises:
        ValueError: naming the first seed outside, or the two devices.
    """
    if seeds.device != device:
        raise ValueError(f"seeds lie on {seeds.device} but the graph on {device}; move one with .to()")
    check_index("seeds", seeds.values, num_nodes)
