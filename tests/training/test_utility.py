import math

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
    order = sorted(best, key=lambda d: (-best[d], d))
    gain = sum(1 / math.log2(2 + order.index(g)) for g in gold)
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
        rewards = utility.retrieval_utility(q, expanded, ptr, passages, document, gold[: len(sizes)])
    finally:
        utility.BLOCK = kept
    expected = [slow(q[i], expanded[ptr[i] : ptr[i + 1]], passages, document, gold[i]) for i in range(len(sizes))]
    torch.testing.assert_close(rewards, torch.tensor(expected), rtol=1e-5, atol=1e-6)
