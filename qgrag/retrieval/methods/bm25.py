"""Lexical retrieval: chunks by BM25."""

from collections.abc import Sequence

import torch
from torch import Tensor

from qgrag.retrieval.base import Ranking, Retriever, top_chunks


class BM25Retriever(Retriever):
    """Chunks by BM25; a chunk that shares no term with the query is not returned."""

    name = "bm25"
    needs_vectors = False

    def rank(self, queries: Sequence[str], vectors: Tensor, top_k: int) -> Ranking:
        scores = self.index.lexical.scores(queries)
        chunks, values = top_chunks(scores.masked_fill(scores <= 0, -torch.inf), top_k)
        return Ranking(chunks, values)
