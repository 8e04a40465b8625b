"""Losses of a reward model, and how often it chooses well; all over subgraphs grouped by question."""

from typing import Literal

import torch
from torch import Tensor
from torch_geometric.utils import scatter, softmax

RewardLoss = Literal["regression", "pairwise", "listwise"]
TIE = 1e-6


def reward_loss(kind: RewardLoss, score: Tensor, reward: Tensor, question: Tensor, temperature: float) -> Tensor:
    """The loss of a batch.

    Args:
        kind: `regression`: mean squared error (score - reward)^2. `pairwise`: Bradley-Terry, the mean of
            -log sigma((s_i - s_j) / temperature) over pairs of one question with r_i > r_j. `listwise`: ListNet, the
            cross entropy between the softmax of reward / temperature and that of score / temperature, mean over
            questions.
        score: float [S].
        reward: float [S].
        question: int64 [S], rising from 0 without gaps, the question of each subgraph.
        temperature: above 0; the smaller, the more the order counts and the less the distance.

    Returns:
        float []; 0 where no pair of a question differs (`pairwise`). O(S^2) for `pairwise`, O(S) otherwise.
    """
    if kind == "regression":
        return torch.nn.functional.mse_loss(score, reward)
    if kind == "pairwise":
        better = (question.unsqueeze(1) == question) & (reward.unsqueeze(1) > reward + TIE)
        margins = (score.unsqueeze(1) - score)[better] / temperature
        return torch.nn.functional.softplus(-margins).sum() / max(1, margins.numel())
    target = softmax(reward / temperature, question)
    logits = score / temperature
    log_probability = logits - _log_sum_exp(logits, question)[question]
    return -(target * log_probability).sum() / (question[-1] + 1)


def top_choice(score: Tensor, reward: Tensor, question: Tensor) -> Tensor:
    """For each question 1 where the best-scored subgraph is the most useful, float [Q].

    A subgraph whose reward equals the best counts as most useful; among equal scores the first is chosen.
    """
    return (regret(score, reward, question) <= TIE).float()


def regret(score: Tensor, reward: Tensor, question: Tensor) -> Tensor:
    """For each question the reward that the best subgraph has above the best-scored one, float [Q].

    Unlike `top_choice` it weighs a wrong choice by what it costs; among equal scores the first is chosen.
    """
    best_score = scatter(score, question, reduce="max")
    place = torch.arange(len(score), device=score.device)
    at_top = torch.where(score == best_score[question], place, len(score))
    chosen = scatter(at_top, question, reduce="min")
    return scatter(reward, question, reduce="max") - reward[chosen]


def chance_choice(reward: Tensor, question: Tensor) -> Tensor:
    """For each question the share of its subgraphs that are most useful, float [Q]."""
    best = scatter(reward, question, reduce="max")[question]
    return scatter((reward >= best - TIE).float(), question, reduce="mean")


def _log_sum_exp(score: Tensor, question: Tensor) -> Tensor:
    top = scatter(score.detach(), question, reduce="max")
    return top + scatter((score - top[question]).exp(), question, reduce="sum").log()
