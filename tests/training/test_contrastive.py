import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from qgrag.errors import InputError
from qgrag.training.contrastive import check_temperature, false_negatives, info_nce
from qgrag.training.pair_batches import PairCollator, PairDataset, text_id
from qgrag.training.pairs import TrainingPair
from qgrag.training.sampling import Draw


def slow_info_nce(q, d, positive, excluded, temperature):
    losses = []
    for i, own in enumerate(positive.tolist()):
        top = math.exp(float(q[i] @ d[own]) / temperature)
        total = sum(math.exp(float(q[i] @ d[j]) / temperature) for j in range(len(d)) if j == own or not excluded[i, j])
        losses.append(-math.log(top / total))
    return sum(losses) / len(losses)


@settings(deadline=None, max_examples=30)
@given(st.integers(1, 6), st.integers(0, 5), st.integers(0, 10**6), st.sampled_from([0.02, 0.05, 1.0]))
def test_equals_the_formula(b, extra, seed, temperature):
    g = torch.Generator().manual_seed(seed)
    unit = lambda n: torch.nn.functional.normalize(torch.randn(n, 8, generator=g), dim=1)  # noqa: E731
    q, d = unit(b), unit(b + extra)
    positive = torch.randperm(b + extra, generator=g)[:b]
    excluded = torch.rand(b, b + extra, generator=g) < 0.3
    result = info_nce(q, d, positive, excluded, temperature)
    assert result.loss.item() == pytest.approx(slow_info_nce(q, d, positive, excluded, temperature), rel=1e-4, abs=1e-5)
    free = [sum(not excluded[i, j] for j in range(b + extra) if j != positive[i]) for i in range(b)]
    assert result.negatives.item() == pytest.approx(sum(free) / b)


def test_given_and_repeated_texts_are_masked():
    pairs = [
        TrainingPair("q1", ("p1", "p2"), ("n1",)),
        TrainingPair("q2", ("p2",), ("p1",)),
        TrainingPair("q1", ("p3",), ("n1",)),
    ]
    dataset = PairDataset(pairs, negatives=1, seed=0)
    batch = PairCollator(_fake, _fake)([dataset[Draw(0, i)] for i in range(3)])
    texts = [key for key, _ in batch.keys.tolist()]
    assert len(set(texts)) == len(texts) == len(batch.passages["input_ids"])
    assert [texts[row] for row in batch.positive[1:].tolist()] == [text_id("p2"), text_id("p3")]
    excluded = false_negatives(batch.known, batch.keys)
    answers = {"q1": {"p1", "p2", "p3"}, "q2": {"p2"}}
    for row, query in enumerate(["q1", "q2", "q1"]):
        expected = [key in {text_id(text) for text in answers[query]} for key in texts]
        assert excluded[row].tolist() == expected


def test_a_passage_of_two_processes_counts_once():
    keys = torch.tensor([[5, 0], [6, 0], [5, 0], [7, 0], [6, 0], [-1, -1]])
    known = torch.tensor([[5], [7]])
    assert false_negatives(known, keys).tolist() == [
        [True, False, True, False, True, True],
        [False, False, True, True, True, True],
    ]


def test_texts_of_one_document_are_no_negatives_of_each_other():
    pairs = [
        TrainingPair("q1", ("first half",), (), pos_ids=("doc",)),
        TrainingPair("q2", ("second half",), (), pos_ids=("doc",)),
        TrainingPair("q3", ("other",), (), pos_ids=("another",)),
    ]
    dataset = PairDataset(pairs, negatives=0, seed=0)
    batch = PairCollator(_fake, _fake)([dataset[Draw(0, i)] for i in range(3)])
    assert false_negatives(batch.known, batch.keys).tolist() == [
        [True, True, False],
        [True, True, False],
        [False, False, True],
    ]


def test_draws_change_by_epoch_and_repeat_by_seed():
    pair = TrainingPair("q", tuple(f"p{i}" for i in range(20)), tuple(f"n{i}" for i in range(20)))
    dataset = PairDataset([pair], negatives=3, seed=5)
    drawn = [dataset[Draw(epoch, 0)].passages for epoch in range(4)]
    assert len({tuple(d) for d in drawn}) == 4
    assert drawn == [PairDataset([pair], 3, 5)[Draw(epoch, 0)].passages for epoch in range(4)]
    assert all(len(d) == 4 and d[0].startswith("p") and all(n.startswith("n") for n in d[1:]) for d in drawn)


def test_temperature_has_to_be_positive():
    with pytest.raises(InputError, match="above 0, not 0"):
        check_temperature(0)


def _fake(texts):
    return {"input_ids": torch.zeros(len(texts), 1)}
