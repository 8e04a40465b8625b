"""No retrieval at all: what a language model answers from its own knowledge."""

from collections.abc import Sequence

import torch
from torch import Tensor

from qgrag.retrieval.base import Ranking, Retriever


class LLMOnlyRetriever(Retriever):
    """Finds nothing, for every query: the baseline beside which retrieval shows what it brings to an answer."""

    name = "llm-only"
    needs_vectors = False
    reads = "nothing"

    def rank(self, queries: Sequence[str], vectors: Tensor, top_k: int) -> Ranking:
        return Ranking(torch.empty(len(queries), 0, dtype=torch.long), torch.empty(len(queries), 0))
