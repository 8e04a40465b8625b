import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import qgrag.training.utility as utility


def slow(q, expanded, passages, document, gold, k):
    if not len(expanded):
        return 0.0
    best: dict[int, float] = {}
    for d, vector in zip(document.tolist(), passages, strict=True):
        score = max(float(x @ vector) for x in expanded) + float(q @ vector)
        best[d] = max(best.get(d, -math.inf), score)
    ranks = [1 + sum(score > best[g] for score in best.values()) for g in gold]
    gain = sum(1 / math.log2(1 + rank) for rank in ranks if rank <= k)
    return gain / sum(1 / math.log2(2 + i) for i in range(min(k, len(gold))))


@settings(deadline=None, max_examples=30)
@given(
    st.lists(st.integers(0, 4), min_size=1, max_size=6),
    st.integers(2, 12),
    st.integers(0, 10**6),
    st.integers(1, 6),
    st.integers(1, 3),
)
def test_equals_a_plain_loop_whatever_the_block(sizes, chunks, seed, block, k):
    g = torch.Generator().manual_seed(seed)
    expanded, passages = torch.randn(sum(sizes), 4, generator=g), torch.randn(chunks, 4, generator=g)
    q = torch.randn(len(sizes), 4, generator=g)
    documents = min(chunks, 4)
    document = torch.cat([torch.arange(documents), torch.randint(0, documents, (chunks - documents,), generator=g)])
    gold = [[0], [1], [0, 1]] * len(sizes)
    ptr = torch.tensor([0, *sizes]).cumsum(0)
    kept, utility.BLOCK = utility.BLOCK, block
    try:
        rewards = utility.retrieval_utility(q, expanded, ptr, passages, document, gold[: len(sizes)], k)
    finally:
        utility.BLOCK = kept
    expected = [slow(q[i], expanded[ptr[i] : ptr[i + 1]], passages, document, gold[i], k) for i in range(len(sizes))]
    torch.testing.assert_close(rewards, torch.tensor(expected), rtol=1e-5, atol=1e-6)


def test_worked_by_hand():
    passages = torch.tensor([[1.0, 0.0], [0.8, 0.6], [0.0, 1.0]])
    q, expanded = torch.tensor([[1.0, 0.0]]), torch.tensor([[1.0, 0.0]])
    arguments = (q, expanded, torch.tensor([0, 1]), passages, torch.arange(3))
    ranked = [float(utility.retrieval_utility(*arguments, [[g]])) for g in range(3)]
    assert ranked == pytest.approx([1.0, 1 / math.log2(3), 0.5])
    assert float(utility.retrieval_utility(*arguments, [[2]], k=2)) == 0
    both = float(utility.retrieval_utility(*arguments, [[0, 2]]))
    assert both == pytest.approx((1 + 0.5) / (1 + 1 / math.log2(3)))


def test_gold_documents_of_equal_score_are_worth_no_more_than_all():
    passages = torch.tensor([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    q, expanded = torch.tensor([[1.0, 0.0]]), torch.tensor([[1.0, 0.0]])
    assert float(utility.retrieval_utility(q, expanded, torch.tensor([0, 1]), passages, torch.arange(3), [[0, 1]])) == 1
