"""Small stand-ins for the large models of a recipe. A smoke run shows that a recipe runs; its figures mean nothing."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from qgrag.corpus.sentences import split_sentences
from qgrag.evaluation.answers.metrics import answer_metrics, words
from qgrag.generation.correctness import Verdict
from qgrag.generation.pairwise import CRITERIA, SWAPPED, Comparison, compared
from qgrag.models.embedder import Embedder


class EmbeddingScorer:
    """Scores pairs by cosine, where a cross-encoder would read them together."""

    name = "cosine of embeddings"

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder

    def score(self, queries: Sequence[str], texts: Sequence[str]) -> Tensor:
        distinct_queries, distinct_texts = list(dict.fromkeys(queries)), list(dict.fromkeys(texts))
        asked = self._embedder.encode_queries(distinct_queries)
        told = self._embedder.encode(distinct_texts)
        query_row = {query: row for row, query in enumerate(distinct_queries)}
        text_row = {text: row for row, text in enumerate(distinct_texts)}
        return (asked[[query_row[q] for q in queries]] * told[[text_row[t] for t in texts]]).sum(1)


class RememberingEmbedder:
    """Vectors of another embedder, computed once per text: all methods of a smoke run read the same few documents."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self._passages: dict[str, Tensor] = {}
        self._queries: dict[str, Tensor] = {}

    @property
    def name(self) -> str:
        return self._embedder.name

    @property
    def fingerprint(self) -> str:
        return self._embedder.fingerprint

    @property
    def dimension(self) -> int:
        return self._embedder.dimension

    def encode(self, texts: Sequence[str], *, description: str = "Embedding") -> Tensor:
        """See `Embedder.encode`."""
        return self._known(texts, self._passages, lambda new: self._embedder.encode(new, description=description))

    def encode_queries(self, queries: Sequence[str]) -> Tensor:
        """See `Embedder.encode_queries`."""
        return self._known(queries, self._queries, self._embedder.encode_queries)

    def _known(
        self, texts: Sequence[str], known: dict[str, Tensor], encode: Callable[[Sequence[str]], Tensor]
    ) -> Tensor:
        new = [text for text in dict.fromkeys(texts) if text not in known]
        if new:
            known.update(zip(new, encode(new), strict=True))
        return torch.stack([known[text] for text in texts]) if texts else torch.empty(0, self.dimension)


class ContainsJudge:
    """Calls an answer correct if it contains a reference."""

    def __call__(
        self, queries: Sequence[str], references: Sequence[Sequence[str]], answers: Sequence[str]
    ) -> list[Verdict]:
        pairs = zip(references, answers, strict=True)
        return [Verdict(bool(answer_metrics(answer, accepted)["contains"]), "contains") for accepted, answer in pairs]


class CountingJudge:
    """Prefers the answer with more distinct words and, for diversity, with more sentences: no judgement of quality."""

    def __call__(self, queries: Sequence[str], first: Sequence[str], second: Sequence[str]) -> list[Comparison]:
        return [_compared(a, b) for _, a, b in zip(queries, first, second, strict=True)]


def _compared(first: str, second: str) -> Comparison:
    places = {
        criterion: _place(*(len(split_sentences(t)) for t in (first, second)))
        if criterion == "diversity"
        else _place(*(len(set(words(t))) for t in (first, second)))
        for criterion in CRITERIA
    }
    return compared(places, {criterion: SWAPPED[place] for criterion, place in places.items()}, ("counted", "counted"))


def _place(first: int, second: int) -> str:
    return "tie" if first == second else "1" if first > second else "2"
