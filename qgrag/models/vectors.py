"""Vectors that are no directions: not a number, infinite, all zero, or missing."""

from collections.abc import Sequence

import torch
from torch import Tensor

from qgrag.errors import InputError

SHOWN = 5
SHOWN_CHARS = 40


def bad_vectors(vectors: Tensor) -> list[tuple[int, str]]:
    """The rows of float [n, d] that cannot be normalised, each with what is wrong with it."""
    if not vectors.numel():
        return []
    wrong = torch.stack((vectors.isnan().any(1), vectors.isinf().any(1), ~vectors.any(1)), dim=1)
    kinds = ("not a number", "infinite", "all zeros")
    rows = wrong.any(1).nonzero().flatten().tolist()
    return [(row, kinds[int(wrong[row].int().argmax())]) for row in rows]


def listed(bad: Sequence[tuple[int, str]], texts: Sequence[str], first: int = 0) -> str:
    """A few of the bad rows, by position (from 0, counted from `first`) and by the beginning of their texts."""
    named = [f"{first + row} ({what}, for {texts[row][:SHOWN_CHARS]!r})" for row, what in bad[:SHOWN]]
    more = f" and {len(bad) - SHOWN} more" if len(bad) > SHOWN else ""
    return f"{len(bad)} of {len(texts)} vectors cannot be used, at positions {', '.join(named)}{more}"


def checked_vectors(vectors: Tensor, texts: Sequence[str], name: str) -> Tensor:
    """The vectors [n, d] that an embedding model gave for n texts, on the CPU, if all can be used.

    Raises:
        InputError: there are not n of them, or some are not finite or all zeros; they are named by position and text.
    """
    if not isinstance(vectors, Tensor) or vectors.dim() != 2 or len(vectors) != len(texts):
        shape = list(vectors.shape) if isinstance(vectors, Tensor) else type(vectors).__name__
        raise InputError(f"embedding model {name!r}: {len(texts)} texts need a tensor [{len(texts)}, d], not {shape}")
    vectors = vectors.cpu()
    if bad := bad_vectors(vectors):
        raise InputError(
            f"embedding model {name!r}: {listed(bad, texts)}; correct the model (or its dtype), or leave the texts out"
        )
    return vectors
