"""The steps of a query by rules and the embedding model, with no language model."""

from collections.abc import Sequence

import torch
from torch import Tensor

from qgrag.retrieval.linking.link import Encode


class LocalEntityQuestions:
    """An `EntityQuestions`: the query itself, turned to one entity at a time."""

    def __call__(self, queries: Sequence[str], entities: Sequence[str]) -> list[list[str]]:
        return [
            [f"{entity}: {query}", f"What is {entity}?", f"What is {entity} known for?"]
            for query, entity in zip(queries, entities, strict=True)
        ]


class LocalEntitySummaries:
    """An `EntitySummaries` that picks sentences by maximal marginal relevance (Carbonell and Goldstein,
    1998).

    A sentence's relevance is its cosine with the query or the closest of the questions; each further sentence
    loses what it has in common with those picked before.

    Args:
        encode: queries and questions -> unit vectors, float32 [n, d].
        sentences: sentences of a summary, at most.
        novelty: weight of being unlike the sentences picked, from 0 to 1.
        encode_descriptions: the same for descriptions; None takes `encode`.
    """

    def __init__(
        self,
        encode: Encode,
        sentences: int = 5,
        novelty: float = 0.3,
        *,
        encode_descriptions: Encode | None = None,
    ) -> None:
        if sentences < 1 or not 0 <= novelty <= 1:
            raise ValueError(f"sentences must be at least 1 and novelty from 0 to 1, not {sentences} and {novelty}")
        self._encode = encode
        self._encode_descriptions = encode_descriptions or encode
        self._sentences = sentences
        self._novelty = novelty

    def __call__(
        self,
        queries: Sequence[str],
        entities: Sequence[str],
        descriptions: Sequence[Sequence[str]],
        questions: Sequence[Sequence[str]],
    ) -> list[str]:
        asked = [[query, *row] for query, row in zip(queries, questions, strict=True)]
        told = self._encode_descriptions([text for row in descriptions for text in row])
        wanted = self._encode([text for row in asked for text in row])
        summaries = []
        d = q = 0
        for row, ask in zip(descriptions, asked, strict=True):
            relevance = (told[d : d + len(row)] @ wanted[q : q + len(ask)].T).amax(1) if row else torch.empty(0)
            picked = marginal_relevance(told[d : d + len(row)], relevance, self._sentences, self._novelty)
            summaries.append(" ".join(row[i] for i in picked))
            d, q = d + len(row), q + len(ask)
        return summaries


def marginal_relevance(vectors: Tensor, relevance: Tensor, k: int, novelty: float) -> list[int]:
    """Positions picked one by one: argmax of (1 - novelty) relevance - novelty max cosine with those picked.

    Args:
        vectors: float32 [n, d], unit vectors.
        relevance: float32 [n].
        k: positions wanted.
        novelty: from 0 (relevance alone) to 1.
    """
    picked: list[int] = []
    common = torch.zeros(len(vectors))
    open_to = torch.ones(len(vectors), dtype=torch.bool)
    for _ in range(min(k, len(vectors))):
        value = ((1 - novelty) * relevance - novelty * common).masked_fill(~open_to, -torch.inf)
        best = int(value.argmax())
        picked.append(best)
        open_to[best] = False
        common = torch.maximum(common, vectors @ vectors[best])
    return picked
