"""Paired bootstrap against scipy's and against cases whose outcome is known."""

import numpy as np
import pytest
from scipy import stats

from qgrag.errors import InputError
from qgrag.evaluation.bootstrap import BootstrapConfig, paired_bootstrap, pairwise_bootstrap, resampled_means


@pytest.fixture
def systems() -> dict[str, np.ndarray]:
    generator = np.random.default_rng(3)
    ability = generator.normal(size=(120, 1))
    return {
        name: (ability + generator.normal(size=(120, 2)) + shift > 0).astype(float)
        for name, shift in {"weak": 0.0, "strong": 0.8, "middle": 0.3}.items()
    }


def test_agrees_with_scipy(systems: dict[str, np.ndarray]) -> None:
    a, b = systems["strong"][:, 0], systems["weak"][:, 0]
    ours = paired_bootstrap(a, b, BootstrapConfig(resamples=20_000))
    theirs = stats.bootstrap(
        (a, b),
        lambda x, y, axis: x.mean(axis=axis) - y.mean(axis=axis),
        paired=True,
        method="percentile",
        n_resamples=20_000,
        rng=np.random.default_rng(0),
    ).confidence_interval
    assert ours.mean == pytest.approx(a.mean() - b.mean())
    assert ours.low == pytest.approx(theirs.low, abs=0.01)
    assert ours.high == pytest.approx(theirs.high, abs=0.01)


def test_pairing_narrows_the_interval() -> None:
    generator = np.random.default_rng(1)
    b = generator.integers(0, 2, size=200).astype(float)
    a = b.copy()
    a[:10] = 1.0
    paired = paired_bootstrap(a, b)
    assert paired.high - paired.low < 0.06
    unpaired = paired_bootstrap(a, generator.permutation(b))
    assert unpaired.high - unpaired.low > 0.15


def test_equal_systems_differ_by_nothing(systems: dict[str, np.ndarray]) -> None:
    difference = paired_bootstrap(systems["weak"], systems["weak"])
    for values in (difference.mean, difference.low, difference.high):
        np.testing.assert_array_equal(values, np.zeros(2))


def test_constant_difference_is_certain() -> None:
    difference = paired_bootstrap(np.full(7, 0.75), np.full(7, 0.5))
    assert (difference.mean, difference.low, difference.high) == (0.25, 0.25, 0.25)


def test_columns_and_pairs_share_draws(systems: dict[str, np.ndarray]) -> None:
    pairs = pairwise_bootstrap(systems)
    assert list(pairs) == [("weak", "strong"), ("weak", "middle"), ("strong", "middle")]
    alone = paired_bootstrap(systems["strong"][:, 1], systems["middle"][:, 1])
    assert pairs["strong", "middle"].low.shape == (2,)
    assert pairs["strong", "middle"].low[1] == pytest.approx(alone.low)
    assert pairs["strong", "middle"].high[1] == pytest.approx(alone.high)


def test_seed_decides(systems: dict[str, np.ndarray]) -> None:
    a, b = systems["strong"], systems["weak"]
    first, again = (paired_bootstrap(a, b, BootstrapConfig(500, seed=1)) for _ in range(2))
    other = paired_bootstrap(a, b, BootstrapConfig(500, seed=2))
    np.testing.assert_array_equal(first.low, again.low)
    assert not np.array_equal(first.low, other.low) or not np.array_equal(first.high, other.high)


def test_block_size_changes_nothing(systems: dict[str, np.ndarray]) -> None:
    whole = resampled_means(systems["weak"], 100, seed=5, block=100)
    np.testing.assert_array_equal(whole, resampled_means(systems["weak"], 100, seed=5, block=7))
    assert whole.shape == (100, 2)


def test_interval_covers_the_truth() -> None:
    generator = np.random.default_rng(11)
    covered = 0
    for _ in range(100):
        b = generator.normal(size=80)
        a = b + generator.normal(0.3, 1.0, size=80)
        difference = paired_bootstrap(a, b, BootstrapConfig(resamples=400))
        covered += bool(difference.low <= 0.3 <= difference.high)
    assert covered >= 88


def test_bad_input() -> None:
    with pytest.raises(InputError, match="same questions"):
        paired_bootstrap(np.zeros(3), np.zeros(4))
    with pytest.raises(InputError, match="at least one question"):
        paired_bootstrap(np.zeros(0), np.zeros(0))
    with pytest.raises(InputError, match="resamples"):
        BootstrapConfig(resamples=0)
    with pytest.raises(InputError, match="confidence"):
        BootstrapConfig(confidence=95)
