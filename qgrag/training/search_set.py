"""What an embedding model is validated on: queries, every passage known, and which of them answer."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from qgrag.training.pairs import TrainingPair
from qgrag.training.text_encoder import Features


@dataclass(frozen=True, slots=True)
class SearchSet:
    """A retrieval task.

    Args:
        queries: distinct texts.
        passages: distinct texts, all candidates of every query.
        query: int64 [G], rising, the query of each gold pair.
        passage: int64 [G], its passage.
    """

    queries: Sequence[str]
    passages: Sequence[str]
    query: Tensor
    passage: Tensor


class SearchBatch(NamedTuple):
    """Args:
    rows: int64 [n], which queries or passages these are.
    features: their token ids and masks.
    """

    rows: Tensor
    features: Features


def search_set(pairs: Iterable[TrainingPair], others: Iterable[TrainingPair]) -> SearchSet:
    """Queries of `pairs`, against every text of `pairs` and `others`: unseen questions in the whole corpus."""
    gold: dict[str, dict[str, None]] = {}
    passages: dict[str, int] = {}
    for pair in pairs:
        gold.setdefault(pair.query, {}).update(dict.fromkeys(pair.pos))
        for text in (*pair.pos, *pair.neg):
            passages.setdefault(text, len(passages))
    for pair in others:
        for text in (*pair.pos, *pair.neg):
            passages.setdefault(text, len(passages))
    edges = [(q, passages[text]) for q, texts in enumerate(gold.values()) for text in texts]
    query, passage = torch.tensor(edges).T
    return SearchSet(list(gold), list(passages), query, passage)
