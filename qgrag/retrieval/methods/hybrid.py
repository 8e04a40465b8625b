"""Dense and lexical scores of chunks, standardised over the corpus and added."""

from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor

from qgrag.errors import ConfigError
from qgrag.index.reader import Index
from qgrag.retrieval.base import Ranking, Retriever, standardise, top_chunks


@dataclass(frozen=True)
class HybridConfig:
    """Args:
    lexical_weight: weight of BM25 beside the dense score's 1.
    """

    lexical_weight: float = 1.0

    def __post_init__(self) -> None:
        if self.lexical_weight < 0:
            raise ConfigError(f"lexical_weight must be 0 or more, not {self.lexical_weight}")


class HybridRetriever(Retriever):
    """Score of a chunk: z(cosine) + lexical_weight * z(BM25), z over all chunks of the index for one query."""

    name = "hybrid"
    Config = HybridConfig

    def __init__(self, index: Index, config: HybridConfig | None = None) -> None:
        super().__init__(index)
        self.config = config or HybridConfig()

    def rank(self, queries: Sequence[str], vectors: Tensor, top_k: int) -> Ranking:
        passages = self.index.passages.vectors
        dense = vectors.to(passages.device) @ passages.T
        lexical = self.index.lexical.scores(queries).to(dense.device)
        mixed = standardise(dense) + self.config.lexical_weight * standardise(lexical)
        chunks, values = top_chunks(mixed.cpu(), top_k)
        return Ranking(chunks, values)
