"""Pairs to tokenized batches, with what the loss needs to know false negatives."""

import hashlib
import random
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor
from torch.utils.data import Dataset

from qgrag.training.pairs import TrainingPair
from qgrag.training.sampling import Draw
from qgrag.training.text_encoder import Features

Tokenize = Callable[[Sequence[str]], Features]


class Example(NamedTuple):
    """One query with the passages drawn for it, its positive first.

    Args:
        query: its text.
        passages: texts.
        keys: of each passage, the key of its text and of its document (0 without one).
        known: keys of everything that answers the query.
    """

    query: str
    passages: list[str]
    keys: list[tuple[int, int]]
    known: frozenset[int]


class PairBatch(NamedTuple):
    """B queries and their passages.

    Args:
        queries: token ids and masks [B, n].
        passages: the same [P, m]: the positives and given negatives of all queries, each text once.
        positive: int64 [B], row of each query's positive among the passages.
        keys: int64 [P, 2], of each passage's text and document.
        known: int64 [B, K], keys of what answers each query, padded with 0.
    """

    queries: Features
    passages: Features
    positive: Tensor
    keys: Tensor
    known: Tensor


class PairDataset(Dataset[Example]):
    """Draws a positive and given negatives for each query, another draw each epoch, fixed by seed.

    Args:
        pairs: the training data. Pairs of one query share what answers it.
        negatives: given negatives drawn for a query, at most; a pair with fewer brings what it has.
        seed: of the draws.
    """

    def __init__(self, pairs: Sequence[TrainingPair], negatives: int, seed: int) -> None:
        self.pairs, self.negatives, self.seed = pairs, negatives, seed
        known: dict[str, set[int]] = defaultdict(set)
        for pair in pairs:
            known[pair.query].update(text_id(text) for text in pair.pos)
            known[pair.query].update(document_id(name) for name in pair.pos_ids)
        self.known = {query: frozenset(keys) for query, keys in known.items()}

    def __len__(self) -> int:
        return len(self.pairs)

    def __getitem__(self, draw: Draw) -> Example:
        pair = self.pairs[draw.example]
        chance = random.Random(f"{self.seed} {draw.epoch} {draw.example}")
        pos = chance.randrange(len(pair.pos))
        neg = chance.sample(range(len(pair.neg)), min(self.negatives, len(pair.neg)))
        keys = [_keys(pair.pos, pair.pos_ids, pos), *(_keys(pair.neg, pair.neg_ids, i) for i in neg)]
        return Example(pair.query, [pair.pos[pos], *(pair.neg[i] for i in neg)], keys, self.known[pair.query])


class PairCollator:
    """Examples to a batch, in which a passage that several queries share is encoded once.

    Args:
        tokenize_queries: texts to token ids.
        tokenize_passages: the same.
    """

    def __init__(self, tokenize_queries: Tokenize, tokenize_passages: Tokenize) -> None:
        self._queries, self._passages = tokenize_queries, tokenize_passages

    def __call__(self, examples: Sequence[Example]) -> PairBatch:
        row_of: dict[tuple[str, tuple[int, int]], int] = {}
        for example in examples:
            for passage in zip(example.passages, example.keys, strict=True):
                row_of.setdefault(passage, len(row_of))
        positive = [row_of[example.passages[0], example.keys[0]] for example in examples]
        longest = max(len(example.known) for example in examples)
        known = [sorted(example.known) + [0] * (longest - len(example.known)) for example in examples]
        return PairBatch(
            self._queries([example.query for example in examples]),
            self._passages([text for text, _ in row_of]),
            torch.tensor(positive),
            torch.tensor([keys for _, keys in row_of]),
            torch.tensor(known),
        )


def text_id(text: str) -> int:
    """Key of a text: 63 bits of BLAKE2b, never 0."""
    return _hash(f"text\x00{text}")


def document_id(name: str) -> int:
    """Key of a document's id, apart from those of texts."""
    return _hash(f"document\x00{name}")


def _keys(texts: Sequence[str], ids: Sequence[str], i: int) -> tuple[int, int]:
    return text_id(texts[i]), document_id(ids[i]) if ids else 0


def _hash(content: str) -> int:
    digest = hashlib.blake2b(content.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return max(1, int.from_bytes(digest, "big") >> 1)
