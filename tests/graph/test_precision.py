"""The screening dtype is chosen by what the processor multiplies faster, and changes no neighbour."""

import pytest
import torch

from qgrag.graph import knn_exact, knn_graph, precision


def test_the_faster_product_wins(monkeypatch: pytest.MonkeyPatch) -> None:
    for slow, fast in ((torch.bfloat16, torch.float32), (torch.float32, torch.bfloat16)):
        precision.screening_dtype.cache_clear()
        monkeypatch.setattr(precision, "_product_seconds", lambda x, slow=slow: 1.0 if x.dtype == slow else 0.01)
        assert precision.screening_dtype("cpu") == fast
    precision.screening_dtype.cache_clear()


def test_neighbours_are_the_same_either_way(monkeypatch: pytest.MonkeyPatch) -> None:
    x = torch.nn.functional.normalize(torch.randn(1500, 32, generator=torch.Generator().manual_seed(0)))
    found = []
    for dtype in (torch.bfloat16, torch.float32):
        monkeypatch.setattr(knn_exact, "screening_dtype", lambda _, dtype=dtype: dtype)
        found.append(knn_graph(x, 5))
    assert torch.equal(found[0].index, found[1].index)
    assert torch.equal(found[0].score, found[1].score)
