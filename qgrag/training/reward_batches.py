"""Examples to batches of subgraphs: as cached vectors, or as token ids for an encoder in the loop."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from qgrag.models.reward import pad_ragged
from qgrag.training.pair_batches import Tokenize
from qgrag.training.reward_examples import RewardExample
from qgrag.training.sampling import Draw
from qgrag.training.text_encoder import Features


class Labels(NamedTuple):
    """Args:
    reward: float32 [S].
    question: int64 [S], rising from 0, the question of each subgraph.
    """

    reward: Tensor
    question: Tensor


class VectorBatch(NamedTuple):
    """S subgraphs as vectors.

    Args:
        q: float32 [S, d], the query of each.
        items: float32 [S, n, d], vectors of their triples, padded.
        mask: bool [S, n].
        labels: see there.
    """

    q: Tensor
    items: Tensor
    mask: Tensor
    labels: Labels


class TextBatch(NamedTuple):
    """S subgraphs of Q questions as token ids.

    Args:
        queries: [Q, n].
        texts: [M, m], a row a triple; or [S, m], a row a subgraph, where the model reads tokens.
        ptr: int64 [S + 1], the rows of each subgraph.
        labels: see there.
    """

    queries: Features
    texts: Features
    ptr: Tensor
    labels: Labels


class VectorCollator:
    """Draws to a `VectorBatch`, by looking vectors up.

    Args:
        examples: all of them.
        q: float32 [E, d], vectors of their queries.
        triples: float32 [U, d], vectors of all distinct triples.
        row_of: row of each triple's text in `triples`.
    """

    def __init__(self, examples: Sequence[RewardExample], q: Tensor, triples: Tensor, row_of: dict[str, int]) -> None:
        self._examples, self._q, self._triples = examples, q, triples
        self._rows = [[torch.tensor([row_of[t] for t in s.triples]) for s in e.subgraphs] for e in examples]

    def __call__(self, draws: Sequence[Draw]) -> VectorBatch:
        numbers = [draw.example for draw in draws]
        rows = [subgraph for number in numbers for subgraph in self._rows[number]]
        counts = torch.tensor([0, *map(len, rows)])
        items, mask = pad_ragged(self._triples[torch.cat(rows)], counts.cumsum(0))
        marks = labels([self._examples[number] for number in numbers])
        return VectorBatch(self._q[torch.tensor(numbers)][marks.question], items, mask, marks)


class TextCollator:
    """Draws to a `TextBatch`.

    Args:
        examples: all of them.
        tokenize_queries: texts to token ids.
        tokenize_texts: the same for triples and subgraphs.
        as_one_text: whether a subgraph is one text.
    """

    def __init__(
        self,
        examples: Sequence[RewardExample],
        tokenize_queries: Tokenize,
        tokenize_texts: Tokenize,
        as_one_text: bool,
    ) -> None:
        self._examples, self._queries, self._texts = examples, tokenize_queries, tokenize_texts
        self._as_one_text = as_one_text

    def __call__(self, draws: Sequence[Draw]) -> TextBatch:
        chosen = [self._examples[draw.example] for draw in draws]
        rows = [[serialise(s.triples)] if self._as_one_text else list(s.triples) for e in chosen for s in e.subgraphs]
        ptr = torch.tensor([0, *map(len, rows)]).cumsum(0)
        texts = self._texts([text for row in rows for text in row])
        return TextBatch(self._queries([e.query for e in chosen]), texts, ptr, labels(chosen))


def serialise(triples: Sequence[str]) -> str:
    """A subgraph as one text, whose token states the model attends to."""
    return "; ".join(triples)


def labels(examples: Sequence[RewardExample]) -> Labels:
    """Rewards and questions of all subgraphs, one after another."""
    counts = torch.tensor([len(e.subgraphs) for e in examples])
    reward = torch.tensor([s.reward for e in examples for s in e.subgraphs])
    return Labels(reward, torch.repeat_interleave(counts))
