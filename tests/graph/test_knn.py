"""Exact kNN graphs against a full sort, and appending and removing against building."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from qgrag.graph import KNNGraph, append_knn, knn_graph, remove_knn
from qgrag.graph.knn_exact import inner_products


def full_sort(x: Tensor, k: int) -> KNNGraph:
    """All inner products in float64, rounded to float32, sorted; ties by lower id."""
    score = (x.double() @ x.double().t()).float()
    score.fill_diagonal_(-torch.inf)
    order = torch.sort(score, dim=1, descending=True, stable=True)
    width = min(k, x.size(0) - 1)
    index = torch.nn.functional.pad(order.indices[:, :width], (0, k - width), value=-1)
    return KNNGraph(index, torch.nn.functional.pad(order.values[:, :width], (0, k - width), value=-torch.inf))


def unit(n: int, d: int, seed: int, *, clusters: int = 0) -> Tensor:
    """Unit vectors, around centres where ``clusters`` is given."""
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(n, d, generator=generator)
    if clusters:
        centre = torch.randn(clusters, d, generator=generator)
        x = centre[torch.randint(clusters, (n,), generator=generator)] + 0.3 * x
    return torch.nn.functional.normalize(x)


def assert_same(found: KNNGraph, expected: KNNGraph) -> None:
    assert torch.equal(found.index, expected.index)
    torch.testing.assert_close(found.score, expected.score, atol=1e-7, rtol=0)


@settings(deadline=None, max_examples=40, derandomize=True)
@given(st.integers(1, 40), st.integers(1, 12), st.integers(0, 2**31), st.booleans())
def test_small_graphs_with_ties(n: int, k: int, seed: int, half: bool) -> None:
    generator = torch.Generator().manual_seed(seed)
    x = torch.randint(-1, 2, (n, 4), generator=generator).to(torch.float16 if half else torch.float32)
    assert_same(knn_graph(x, k), full_sort(x.float(), k))


@pytest.mark.parametrize("screen", [torch.bfloat16, torch.float32])
@pytest.mark.parametrize(("clusters", "memory_mb"), [(0, 512), (40, 512), (5, 1)])
def test_screening_loses_nothing(clusters: int, memory_mb: int, screen: torch.dtype, device: torch.device) -> None:
    x = unit(3000, 48, 1, clusters=clusters).to(device)
    assert_same(knn_graph(x, 7, screen=screen, memory_mb=memory_mb), full_sort(x, 7))


def test_near_duplicates_are_told_apart_in_full_precision(device: torch.device) -> None:
    base = unit(20, 32, 2).repeat_interleave(30, 0)
    x = torch.nn.functional.normalize(base + 1e-4 * unit(600, 32, 3)).to(device)
    assert_same(knn_graph(x, 10), full_sort(x, 10))


def test_equal_vectors_go_by_id(device: torch.device) -> None:
    x = torch.ones(2000, 4, device=device) / 2
    index = knn_graph(x, 3).index
    assert index[0].tolist() == [1, 2, 3]
    assert index[1].tolist() == [0, 2, 3]
    assert index[1999].tolist() == [0, 1, 2]


def test_candidates_among_equal_vectors_stay_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    scored = []

    def note(x: Tensor, owner: Tensor, other: Tensor, memory_mb: int) -> Tensor:
        scored.append(owner.numel())
        return inner_products(x, owner, other, memory_mb)

    monkeypatch.setattr("qgrag.graph.knn_exact.inner_products", note)
    x = unit(1, 8, 6).expand(1500, 8).clone()
    x[700] = unit(1, 8, 7)[0]
    assert_same(knn_graph(x, 2, memory_mb=1), full_sort(x, 2))
    assert max(scored) < 600_000


@settings(deadline=None, max_examples=25, derandomize=True)
@given(st.integers(0, 30), st.integers(0, 30), st.integers(1, 6), st.integers(0, 2**31))
def test_append_and_remove_equal_a_build(old: int, new: int, k: int, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    x = torch.randint(-2, 3, (old + new, 3), generator=generator).float()
    whole = knn_graph(x, k)
    grown = append_knn(knn_graph(x[:old], k), x[:old], x[old:], k)
    assert torch.equal(grown.index, whole.index)
    assert torch.equal(grown.score, whole.score)
    keep = torch.rand(old + new, generator=generator) < 0.7
    shrunk, anew = remove_knn(whole, x[keep], keep, k), knn_graph(x[keep], k)
    assert torch.equal(shrunk.index, anew.index)
    assert torch.equal(shrunk.score, anew.score)


def test_append_and_remove_at_size(device: torch.device) -> None:
    x = unit(4000, 32, 4, clusters=60).to(device)
    whole = knn_graph(x, 8)
    grown = append_knn(knn_graph(x[:2900], 8), x[:2900], x[2900:], 8)
    assert_same(grown, whole)
    keep = torch.arange(4000, device=device) % 9 != 0
    assert_same(remove_knn(whole, x[keep], keep, 8), knn_graph(x[keep], 8))


def test_the_last_vector_counts_once(device: torch.device) -> None:
    angle = torch.full((226,), 3.0)
    angle[torch.tensor([0, 1, 40, 100, 225])] = torch.tensor([0.0, 0.01, 0.6, 0.9, 0.1])
    x = torch.stack([angle.cos(), angle.sin()], 1).to(device)
    keep = torch.arange(226, device=device) != 1
    shrunk = remove_knn(knn_graph(x, 3), x[keep], keep, 3)
    assert shrunk.index[0].tolist() == [224, 39, 99]
    assert_same(shrunk, full_sort(x[keep], 3))


def test_edge_index_leaves_padding_out() -> None:
    graph = knn_graph(torch.eye(3)[:2], 4)
    assert graph.index.tolist() == [[1, -1, -1, -1], [0, -1, -1, -1]]
    assert graph.score.tolist() == [[0.0] + [-torch.inf] * 3] * 2
    assert graph.edge_index().tolist() == [[0, 1], [1, 0]]


def test_bad_arguments_are_named() -> None:
    x = unit(5, 4, 0)
    graph = knn_graph(x, 2)
    broken = x.clone()
    broken[3, 1] = torch.nan
    with pytest.raises(ValueError, match="x holds NaN or infinity in row 3"):
        knn_graph(broken, 2)
    with pytest.raises(ValueError, match=r"x must be a floating tensor \[N, d\]; got shape \(5,\)"):
        knn_graph(x[:, 0], 2)
    for large in (torch.full((3, 4), 1e25), torch.full((3, 4), 1e200, dtype=torch.float64)):
        with pytest.raises(ValueError, match=r"x holds a vector of norm above 1e\+18 in row 0; scale"):
            knn_graph(large, 2)
    with pytest.raises(ValueError, match=r"k must be a whole number; got 2\.5"):
        knn_graph(x, 2.5)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="k must be at least 1; got 0"):
        knn_graph(x, 0)
    with pytest.raises(ValueError, match="screen must be"):
        knn_graph(x, 1, screen=torch.float16)
    with pytest.raises(ValueError, match="x_new must have 4 columns"):
        append_knn(graph, x, unit(2, 3, 0), 2)
    with pytest.raises(ValueError, match="graph has 5 nodes but 4 are given"):
        append_knn(graph, x[:4], x, 2)
    with pytest.raises(ValueError, match="k is 3 but graph holds 2"):
        append_knn(graph, x, x, 3)
    with pytest.raises(ValueError, match=r"keep_mask must be a bool \[5\]"):
        remove_knn(graph, x, torch.ones(4, dtype=torch.bool), 2)
    with pytest.raises(ValueError, match="x_kept has 5 rows but keep_mask keeps 4"):
        remove_knn(graph, x, torch.tensor([True] * 4 + [False]), 2)
