"""Approximate kNN graphs against exact ones."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from qgrag.graph import knn_graph, knn_recall
from tests.graph.test_knn import assert_same, full_sort, unit


@settings(deadline=None, max_examples=40, derandomize=True)
@given(st.integers(1, 40), st.integers(1, 12), st.integers(1, 8), st.integers(0, 2**31))
def test_looking_into_all_lists_is_exact(n: int, k: int, lists: int, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    x = torch.randint(-1, 2, (n, 4), generator=generator).float()
    lists = min(lists, n)
    found = knn_graph(x, k, method="ivf", lists=lists, probes=lists, memory_mb=1)
    expected = full_sort(x, k)
    assert torch.equal(found.score, expected.score)
    own = torch.arange(n)[:, None]
    real = found.index >= 0
    assert torch.equal(real, expected.index >= 0)
    assert not (found.index == own).any()
    assert torch.equal((x[own] * x[found.index]).sum(2)[real], found.score[real])
    for row in found.index.tolist():
        held = [other for other in row if other >= 0]
        assert len(set(held)) == len(held)


@pytest.mark.parametrize("method", ["ivf", "hnsw"])
def test_clusters_are_found(method: str, device: torch.device) -> None:
    x = unit(4000, 32, 4, clusters=60).to(device)
    if method == "hnsw" and device.type == "cuda":
        with pytest.raises(ValueError, match='method "hnsw" runs on CPU only'):
            knn_graph(x, 8, method="hnsw")
        return
    graph = knn_graph(x, 8, method=method)
    assert knn_recall(graph, x) > 0.95
    assert (graph.score[:, :-1] >= graph.score[:, 1:]).all()
    assert knn_recall(graph, x) >= knn_recall(knn_graph(x, 8, method="ivf", probes=1), x)
    again = knn_graph(x, 8, method=method)
    assert torch.equal(graph.index, again.index)


def test_recall_counts_the_exact_neighbours_that_are_held() -> None:
    x = unit(500, 16, 5)
    exact = knn_graph(x, 4)
    assert knn_recall(exact, x) == 1
    broken = exact.index.clone()
    broken[:, 0] = -1
    assert knn_recall(type(exact)(broken, exact.score), x, sample=500) == 0.75


def test_equal_vectors_share_one_list(device: torch.device) -> None:
    x = torch.ones(3000, 4, device=device) / 2
    graph = knn_graph(x, 3, method="ivf", memory_mb=1)
    assert graph.score.eq(1).all()


def test_few_vectors_leave_padding(device: torch.device) -> None:
    x = unit(3, 4, 0).to(device)
    assert_same(knn_graph(x, 5, method="ivf"), full_sort(x, 5))
    assert knn_graph(x[:0], 2, method="ivf").index.shape == (0, 2)
    assert knn_graph(x[:0].cpu(), 2, method="hnsw").index.shape == (0, 2)


def test_bad_arguments_are_named() -> None:
    x = unit(50, 4, 0)
    with pytest.raises(ValueError, match="probes must be at most lists and lists at most N; got 3, 2 and 50"):
        knn_graph(x, 2, method="ivf", lists=2, probes=3)
    with pytest.raises(ValueError, match="lists must be at least 1; got 0"):
        knn_graph(x, 2, method="ivf", lists=0)
    with pytest.raises(ValueError, match="probes must be at least 1; got 0"):
        knn_graph(x, 2, method="ivf", probes=0)
    with pytest.raises(ValueError, match='method must be "exact", "ivf" or "hnsw"'):
        knn_graph(x, 2, method="tree")  # type: ignore[arg-type]
