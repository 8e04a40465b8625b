"""Paired bootstrap over questions: how sure is the difference between two systems?

Efron and Tibshirani, An Introduction to the Bootstrap (1993): questions are drawn with replacement, the same
ones for both systems, and the interval holds the middle share of the mean differences (percentile method).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from qgrag.errors import InputError

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Difference:
    """Mean of the first system minus mean of the second, with its confidence interval; all of one shape."""

    mean: Array
    low: Array
    high: Array


@dataclass(frozen=True)
class BootstrapConfig:
    """How intervals are drawn.

    Args:
        resamples: number of draws.
        confidence: share of the draws inside the interval, between 0 and 1.
        seed: of the draws.
    """

    resamples: int = 10_000
    confidence: float = 0.95
    seed: int = 0

    def __post_init__(self) -> None:
        if self.resamples < 1:
            raise InputError(f"bootstrap resamples have to be at least 1, not {self.resamples}")
        if not 0 < self.confidence < 1:
            raise InputError(f"bootstrap confidence has to lie between 0 and 1, not {self.confidence}")


def resampled_means(values: Array, resamples: int, seed: int | Sequence[int], block: int = 1024) -> Array:
    """Means over draws of the questions with replacement.

    Args:
        values: one row per question, [n, c].
        resamples: number of draws R.
        seed: of the draws; they depend on it and on n alone.
        block: draws held in memory at once, as block x n counts.

    Returns:
        [R, c]. Time O(R n c).
    """
    n = len(values)
    generator = np.random.default_rng(seed)
    uniform = np.full(n, 1 / n)
    means = [
        generator.multinomial(n, uniform, size=min(block, resamples - start)) @ values / n
        for start in range(0, resamples, block)
    ]
    return np.concatenate(means)


def mean_intervals(values: Array, config: BootstrapConfig | None = None) -> tuple[Array, Array]:
    """Percentile interval of the mean of one system.

    Args:
        values: one row per question, [n, m].

    Returns:
        Lower and upper ends, [m] each.
    """
    config = config or BootstrapConfig()
    draws = resampled_means(values, config.resamples, config.seed)
    low, high = np.quantile(draws, [(1 - config.confidence) / 2, (1 + config.confidence) / 2], axis=0)
    return low, high


def paired_bootstrap(a: Array, b: Array, config: BootstrapConfig | None = None) -> Difference:
    """Difference between two systems measured on the same questions.

    Args:
        a: values of the first, one row per question, [n] or [n, m] for m metrics.
        b: values of the second, in the same order and shape.

    Returns:
        Arrays of shape [] or [m].

    Raises:
        InputError: the shapes differ, or there is no question.
    """
    return pairwise_bootstrap({"a": a, "b": b}, config)["a", "b"]


def pairwise_bootstrap(
    systems: Mapping[str, Array], config: BootstrapConfig | None = None
) -> dict[tuple[str, str], Difference]:
    """`paired_bootstrap` for every pair of systems, all on the same draws.

    Args:
        systems: by name, one row per question, [n] or [n, m].

    Returns:
        By (first, second) in the order of `systems`.

    Raises:
        InputError: the shapes differ, or there is no question.
    """
    config = config or BootstrapConfig()
    shapes = {name: np.shape(values) for name, values in systems.items()}
    if len(set(shapes.values())) > 1:
        raise InputError(f"paired systems need one value for each of the same questions, not shapes {shapes}")
    shape = next(iter(shapes.values()))
    if shape[0] == 0:
        raise InputError("a bootstrap needs at least one question")
    values = np.stack([np.asarray(v, dtype=np.float64).reshape(shape[0], -1) for v in systems.values()], axis=1)
    draws = resampled_means(values.reshape(shape[0], -1), config.resamples, config.seed)
    draws = draws.reshape(config.resamples, *values.shape[1:])
    means = values.mean(axis=0)
    tails = [(1 - config.confidence) / 2, (1 + config.confidence) / 2]
    differences = {}
    for (i, first), (j, second) in combinations(enumerate(systems), 2):
        low, high = np.quantile(draws[:, i] - draws[:, j], tails, axis=0)
        differences[first, second] = Difference(
            (means[i] - means[j]).reshape(shape[1:]), low.reshape(shape[1:]), high.reshape(shape[1:])
        )
    return differences
