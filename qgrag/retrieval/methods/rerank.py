"""A retriever's first chunks, ordered anew by a cross-encoder."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol

from torch import Tensor

from qgrag.errors import ConfigError
from qgrag.graph.segments import top_pairs
from qgrag.index.reader import Index
from qgrag.llm.model import LanguageModel
from qgrag.llm.prompts import Prompts
from qgrag.models.cross_encoder import CrossEncoderConfig, LocalCrossEncoder
from qgrag.retrieval.base import Maker, Ranking, Retriever
from qgrag.retrieval.evidence.base import Item
from qgrag.retrieval.evidence.items import RerankItem


class PairScorer(Protocol):
    """What re-ranking needs of a cross-encoder."""

    @property
    def name(self) -> str: ...

    def score(self, queries: Sequence[str], texts: Sequence[str]) -> Tensor:
        """Score of each pair (queries[i], texts[i]), float32 [n]."""
        ...


@dataclass(frozen=True)
class RerankConfig:
    """Args:
    first: retriever whose ranking is ordered anew: a registered name, or a YAML file.
    first_parameters: fields of its configuration.
    depth: chunks of it that are read.
    cross_encoder: who reads them.
    """

    first: str = "naive"
    first_parameters: dict[str, Any] = field(default_factory=dict)
    depth: int = 50
    cross_encoder: CrossEncoderConfig = field(default_factory=CrossEncoderConfig)

    def __post_init__(self) -> None:
        if self.depth < 1:
            raise ConfigError(f"rerank.depth must be at least 1, not {self.depth}")
        if self.first == "rerank":
            raise ConfigError("rerank.first may not be the re-ranker itself; name another retriever")


class RerankRetriever(Retriever):
    """Dense retrieval with re-ranking and, with `first: kg`, the graph's chunks with re-ranking: baselines of QMKGF.

    Args:
        index: what is searched.
        config: see there.
        scorer: in place of the cross-encoder that `config` names.
        model: takes the steps of `first` that a language model can take.
        prompts: what it is asked with.
    """

    name = "rerank"
    Config = RerankConfig
    steps: ClassVar[Mapping[str, Maker]] = {
        "model": lambda model, prompts, config: model,
        "prompts": lambda model, prompts, config: prompts,
    }

    def __init__(
        self,
        index: Index,
        config: RerankConfig | None = None,
        *,
        scorer: PairScorer | None = None,
        model: LanguageModel | None = None,
        prompts: Prompts | None = None,
    ) -> None:
        from qgrag.retrieval.registry import load_retriever

        super().__init__(index)
        self.config = config or RerankConfig()
        self.scorer = scorer or LocalCrossEncoder(self.config.cross_encoder)
        parameters = self.config.first_parameters
        self.first = load_retriever(index, self.config.first, model=model, prompts=prompts, **parameters)

    def rank(self, queries: Sequence[str], vectors: Tensor, top_k: int) -> Ranking:
        first = self.first.rank(queries, vectors, max(self.config.depth, top_k))
        query, place = (first.chunks >= 0).nonzero().unbind(1)
        chunk = first.chunks[query, place]
        score = self.scorer.score(
            [queries[q] for q in query.tolist()], [self.index.chunks[c].passage for c in chunk.tolist()]
        )
        chunks, scores = top_pairs(query, chunk, score, len(queries), top_k)
        return Ranking(chunks, scores, first.evidence, self._brought(first, chunks), first.usage)

    def _brought(self, first: Ranking, chunks: Tensor) -> list[dict[int, list[Item]]]:
        """Of each chunk the place that the first retriever gave it, then what had brought it there."""
        brought: list[dict[int, list[Item]]] = []
        for query, row in enumerate(chunks.tolist()):
            places = {chunk: place for place, chunk in enumerate(first.chunks[query].tolist())}
            scores = first.scores[query].tolist()
            before = first.hit_evidence[query] if first.hit_evidence else {}
            brought.append({})
            for chunk in (chunk for chunk in row if chunk >= 0):
                place = places[chunk]
                item = RerankItem(self.scorer.name, self.first.name, place + 1, scores[place])
                brought[query][chunk] = [item, *before.get(chunk, ())]
        return brought
