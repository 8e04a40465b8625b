"""InfoNCE over in-batch and given negatives, with false negatives masked."""

from typing import NamedTuple

import torch
from torch import Tensor

from qgrag.errors import InputError


class ContrastiveLoss(NamedTuple):
    """Args:
    loss: float [], mean over the queries.
    negatives: float [], effective number of negatives a query, mean over the queries.
    correct: float [], share of queries whose positive scores above all their negatives.
    """

    loss: Tensor
    negatives: Tensor
    correct: Tensor


def info_nce(q: Tensor, d: Tensor, positive: Tensor, excluded: Tensor, temperature: float) -> ContrastiveLoss:
    """QMKGF's equation 1: L_i = -log( exp(sim(q_i, p_i) / m) / sum_j exp(sim(q_i, d_j) / m) ).

    Args:
        q: float [B, dim], unit vectors of queries.
        d: float [P, dim], unit vectors of all passages: positives and negatives.
        positive: int64 [B], row in `d` of each query's own positive.
        excluded: bool [B, P], True where a passage is no negative of a query (see `false_negatives`); a query's
            own positive counts whatever stands there.
        temperature: m, above 0 (1 / scale in sentence-transformers).

    Returns:
        The loss is computed in float32. O(B P dim).
    """
    logits = (q.float() @ d.float().T) / temperature
    own = torch.zeros_like(excluded).scatter_(1, positive.unsqueeze(1), True)
    excluded = excluded & ~own
    logits = logits.masked_fill(excluded, -torch.inf)
    loss = torch.nn.functional.cross_entropy(logits, positive)
    negatives = (~excluded & ~own).sum(1).float().mean()
    best_other = logits.detach().masked_fill(own, -torch.inf).amax(1)
    correct = (logits.detach().gather(1, positive.unsqueeze(1)).squeeze(1) > best_other).float().mean()
    return ContrastiveLoss(loss, negatives, correct)


def false_negatives(known: Tensor, keys: Tensor) -> Tensor:
    """Which passages of a batch are no negatives of which query.

    Args:
        known: int64 [B, K], keys of everything that answers each query (texts and document ids, hashed), padded
            with 0.
        keys: int64 [P, 2], keys of each passage's text and of its document; 0 for a passage without an id, and
            (-1, -1) for padding, which is nobody's negative. A passage that comes again, from another process,
            counts where it comes first.

    Returns:
        bool [B, P].
    """
    same = (known.unsqueeze(1).unsqueeze(3) == keys.unsqueeze(0).unsqueeze(2)) & (keys > 0).unsqueeze(0).unsqueeze(2)
    return same.any(3).any(2) | (keys[:, 0] < 0) | _repeated(keys)


def _repeated(keys: Tensor) -> Tensor:
    """Which rows of int64 [P, 2] equal an earlier one, bool [P]."""
    place = torch.arange(len(keys), device=keys.device)
    _, owner = torch.unique(keys, dim=0, return_inverse=True)
    first = torch.full_like(place, len(keys)).scatter_reduce_(0, owner, place, "amin")
    return first[owner] != place


def check_temperature(temperature: float) -> float:
    if not temperature > 0:
        raise InputError(f"temperature has to be above 0, not {temperature}")
    return temperature
