import pytest
import torch

from qgrag.errors import IndexFormatError
from qgrag.index.vectors import FAISS_FILE, VectorConfig, VectorIndex


@pytest.fixture
def vectors():
    torch.manual_seed(0)
    return torch.nn.functional.normalize(torch.randn(2000, 32), dim=1)


@pytest.mark.parametrize("kind", ["flat", "ivf", "hnsw"])
def test_search_finds_the_nearest(vectors, kind, tmp_path):
    index = VectorIndex.build(vectors, VectorConfig(kind=kind, probes=64))
    index.save(tmp_path)
    for opened in (index, VectorIndex.load(tmp_path)):
        scores, ids = opened.search(vectors[:50], 5)
        exact = (vectors[:50] @ vectors.T).topk(5, dim=1).indices
        found = (ids.unsqueeze(2) == exact.unsqueeze(1)).any(2).float().mean()
        assert found > (0.999 if kind == "flat" else 0.9)
        assert torch.equal(ids[:, 0], torch.arange(50))
        assert (scores.diff(dim=1) <= 1e-6).all()
    assert (tmp_path / FAISS_FILE).is_file() == (kind != "flat")


def test_torch_search_equals_faiss_search(vectors):
    faiss_scores, faiss_ids = VectorIndex.exact(vectors).search(vectors[:20], 7)
    scores, ids = VectorIndex(vectors).search(vectors[:20], 7)
    assert torch.equal(ids, faiss_ids)
    torch.testing.assert_close(scores, faiss_scores)


def test_more_neighbours_than_vectors_gives_all_of_them(vectors):
    scores, ids = VectorIndex.exact(vectors[:3]).search(vectors[:2], 10)
    assert ids.shape == scores.shape == (2, 3)
    assert sorted(ids[0].tolist()) == [0, 1, 2]


def test_search_of_nothing_gives_nothing():
    scores, ids = VectorIndex.exact(torch.empty(0, 8)).search(torch.randn(2, 8), 3)
    assert ids.shape == scores.shape == (2, 0)


def test_approximate_search_marks_what_it_did_not_find(vectors):
    index = VectorIndex.build(vectors, VectorConfig(kind="ivf", probes=1))
    scores, ids = index.search(vectors[:1], 1500)
    missing = ids[0] < 0
    assert missing.any()
    assert (scores[0][missing] == -torch.inf).all()


def test_auto_is_exact_below_the_size_and_approximate_above(vectors):
    assert not VectorIndex.build(vectors, VectorConfig(flat_below=2001)).approximate
    assert VectorIndex.build(vectors, VectorConfig(flat_below=2000)).approximate


def test_damaged_faiss_file_is_named(vectors, tmp_path):
    VectorIndex.build(vectors, VectorConfig(kind="hnsw")).save(tmp_path)
    (tmp_path / FAISS_FILE).write_bytes(b"IxXX" + bytes(40))
    with pytest.raises(IndexFormatError, match=r"vectors\.faiss"):
        VectorIndex.load(tmp_path)
