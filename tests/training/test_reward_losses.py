import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from qgrag.training.reward_losses import chance_choice, regret, reward_loss, top_choice

QUESTIONS = st.lists(
    st.lists(
        st.tuples(st.floats(-3, 3, width=32, allow_subnormal=False), st.sampled_from([0.0, 0.25, 0.5, 1.0])),
        min_size=1,
        max_size=4,
    ),
    min_size=1,
    max_size=5,
)


def tensors(questions):
    flat = [item for question in questions for item in question]
    score = torch.tensor([s for s, _ in flat])
    reward = torch.tensor([r for _, r in flat])
    return score, reward, torch.repeat_interleave(torch.tensor([len(q) for q in questions]))


def slow_pairwise(questions):
    losses = [math.log1p(math.exp(-(s - t) / 0.5)) for q in questions for s, r in q for t, other in q if r > other]
    return sum(losses) / max(1, len(losses))


def slow_listwise(questions, temperature):
    total = 0.0
    for q in questions:
        target = [math.exp(r / temperature) for _, r in q]
        denominator = sum(math.exp(s / temperature) for s, _ in q)
        total -= sum(
            t / sum(target) * math.log(math.exp(s / temperature) / denominator)
            for t, (s, _) in zip(target, q, strict=True)
        )
    return total / len(questions)


@settings(deadline=None, max_examples=50)
@given(QUESTIONS)
def test_losses_equal_their_formulas(questions):
    score, reward, question = tensors(questions)
    squares = [(s - r) ** 2 for q in questions for s, r in q]
    expected = {
        "regression": sum(squares) / len(squares),
        "pairwise": slow_pairwise(questions),
        "listwise": slow_listwise(questions, 0.5),
    }
    for kind, value in expected.items():
        assert reward_loss(kind, score, reward, question, 0.5).item() == pytest.approx(value, rel=1e-4, abs=1e-5)


@settings(deadline=None, max_examples=50)
@given(QUESTIONS)
def test_choices_equal_a_plain_count(questions):
    score, reward, question = tensors(questions)
    chosen = [max(range(len(q)), key=lambda i: (q[i][0], -i)) for q in questions]
    best = [max(r for _, r in q) for q in questions]
    hits = [float(q[i][1] == top) for q, i, top in zip(questions, chosen, best, strict=True)]
    assert top_choice(score, reward, question).tolist() == hits
    lost = [top - q[i][1] for q, i, top in zip(questions, chosen, best, strict=True)]
    assert regret(score, reward, question).tolist() == lost
    shares = [sum(r == top for _, r in q) / len(q) for q, top in zip(questions, best, strict=True)]
    assert chance_choice(reward, question).tolist() == pytest.approx(shares)


def test_losses_pull_the_useful_subgraph_up():
    reward, question = torch.tensor([0.1, 0.9, 0.5]), torch.zeros(3, dtype=torch.long)
    for kind in ("regression", "pairwise", "listwise"):
        score = torch.zeros(3, requires_grad=True)
        reward_loss(kind, score, reward, question, 0.1).backward()
        assert score.grad[1] < score.grad[0]


def test_pairwise_of_equal_rewards_is_zero_and_has_a_gradient():
    score = torch.tensor([0.3, 0.4], requires_grad=True)
    loss = reward_loss("pairwise", score, torch.tensor([0.5, 0.5]), torch.zeros(2, dtype=torch.long), 1.0)
    loss.backward()
    assert loss.item() == 0
    assert score.grad.tolist() == [0, 0]
