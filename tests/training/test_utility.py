import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import qgrag.training.utility as utility


def slow(q, expanded, passages, document, gold):
    if not len(expanded):
        return 0.0
    best: dict[int, float] = {}
    for d, vector in zip(document.tolist(), passages, strict=True):
        score = max(float(x @ vector) for x in expanded) + float(q @ vector)
        best[d] = max(best.get(d, -math.inf), score)
    ranks = [1 + sum(1 / (1 + math.exp((best[g] - score) / 0.5)) for d, score in best.items() if d != g) for g in gold]
    gain = sum(1 / math.log2(1 + rank) for rank in ranks)
    return gain / sum(1 / math.log2(2 + i) for i in range(len(gold)))


@settings(deadline=None, max_examples=30)
@given(
    st.lists(st.integers(0, 4), min_size=1, max_size=6), st.integers(2, 12), st.integers(0, 10**6), st.integers(1, 6)
)
def test_equals_a_plain_loop_whatever_the_block(sizes, chunks, seed, block):
    g = torch.Generator().manual_seed(seed)
    expanded, passages = torch.randn(sum(sizes), 4, generator=g), torch.randn(chunks, 4, generator=g)
    q = torch.randn(len(sizes), 4, generator=g)
    document = torch.cat([torch.arange(2), torch.randint(0, 2, (chunks - 2,), generator=g)])
    gold = [[0], [1], [0, 1]] * len(sizes)
    ptr = torch.tensor([0, *sizes]).cumsum(0)
    kept, utility.BLOCK = utility.BLOCK, block
    try:
        rewards = utility.retrieval_utility(q, expanded, ptr, passages, document, gold[: len(sizes)], 0.5)
    finally:
        utility.BLOCK = kept
    expected = [slow(q[i], expanded[ptr[i] : ptr[i + 1]], passages, document, gold[i]) for i in range(len(sizes))]
    torch.testing.assert_close(rewards, torch.tensor(expected), rtol=1e-5, atol=1e-6)


def test_towards_zero_temperature_it_is_ndcg():
    passages = torch.tensor([[1.0, 0.0], [0.8, 0.6], [0.0, 1.0]])
    q, expanded = torch.tensor([[1.0, 0.0]]), torch.tensor([[1.0, 0.0]])
    arguments = (q, expanded, torch.tensor([0, 1]), passages, torch.arange(3))
    hard = [float(utility.retrieval_utility(*arguments, [[g]], temperature=1e-4)) for g in range(3)]
    assert hard == pytest.approx([1.0, 1 / math.log2(3), 0.5])
    soft = [float(utility.retrieval_utility(*arguments, [[g]], temperature=0.2)) for g in range(3)]
    assert 1 > soft[0] > soft[1] > soft[2]
