"""Dense retrieval: chunks by the cosine of their vector with the query's."""

from collections.abc import Sequence

from torch import Tensor

from qgrag.retrieval.base import Ranking, Retriever


class NaiveRetriever(Retriever):
    """Naive RAG's retriever: the chunks nearest to the query."""

    name = "naive"

    def rank(self, queries: Sequence[str], vectors: Tensor, top_k: int) -> Ranking:
        scores, chunks = self.index.passages.search(vectors, top_k)
        return Ranking(chunks, scores)
