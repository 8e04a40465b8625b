"""The interface of every retriever: a list of queries in, a list of results out."""

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor

from qgrag.corpus.searchable import is_blank
from qgrag.errors import InputError
from qgrag.index.reader import Index
from qgrag.llm.model import LanguageModel
from qgrag.llm.prompts import Prompts
from qgrag.llm.usage import Meter, measure
from qgrag.models.vectors import checked_vectors
from qgrag.progress import progress
from qgrag.retrieval.evidence.base import Evidence, Item
from qgrag.retrieval.results import Hit, RetrievalResult

logger = logging.getLogger(__name__)

Reads = Literal["passages", "views", "nothing"]
Maker = Callable[[LanguageModel, Prompts | None, Any], Any]
"""What makes a keyword argument of a retriever from a model, its prompts and the retriever's configuration."""


@dataclass(frozen=True)
class Ranking:
    """Ranked chunks of a batch of B queries.

    Args:
        chunks: int64 [B, K], rows of `Index.chunks`, best first, padded with -1 at the end.
        scores: float32 [B, K], never rising along a row.
        evidence: one record per query; empty where there is nothing to tell.
        hit_evidence: per query, a map from chunk row to the items that brought the chunk.
        usage: per query, LLM calls, tokens and seconds by step, beside those that `retrieve` measures itself.
    """

    chunks: Tensor
    scores: Tensor
    evidence: Sequence[Evidence] = ()
    hit_evidence: Sequence[Mapping[int, Sequence[Item]]] = ()
    usage: Sequence[dict[str, Any]] = field(default=())


class Retriever(ABC):
    """Base of all retrievers: checks queries, encodes them in batches, turns rankings into results.

    A subclass names itself and implements `rank`. One with parameters names the class of its configuration in `Config`
    and takes it as `config`, after the index.

    Args:
        index: what is searched.

    Attributes:
        name: under which it is registered.
        Config: the dataclass of its parameters; None where it has none.
        steps: the steps that a language model can take: keyword arguments of the class, and what makes each.
        needs_vectors: whether `rank` reads the vectors of the queries.
        reads: what the method as published gives its reader: the chunks found, the views of the graph that stand in the
            evidence, or nothing.
        llm_steps: names of the steps that a language model takes, as `load_retriever` handed them over.
    """

    name: ClassVar[str]
    Config: ClassVar[type | None] = None
    steps: ClassVar[Mapping[str, Maker]] = {}
    needs_vectors: ClassVar[bool] = True
    reads: ClassVar[Reads] = "passages"
    llm_steps: tuple[str, ...] = ()

    def __init__(self, index: Index) -> None:
        self.index = index

    def retrieve(self, queries: Sequence[str], top_k: int = 5, *, batch_size: int = 256) -> list[RetrievalResult]:
        """Rank chunks for each query.

        Args:
            queries: any number of texts, none of them blank.
            top_k: hits wanted; fewer come back where the method finds fewer.
            batch_size: queries scored together; memory grows with it, results do not depend on it.

        Returns:
            One result per query, in order.

        Raises:
            InputError: a blank query (named by position), or top_k or batch_size below 1.
        """
        checked = check_queries(queries)
        if top_k < 1 or batch_size < 1:
            raise InputError(f"top_k and batch_size must be at least 1, not {top_k} and {batch_size}")
        results: list[RetrievalResult] = []
        with progress(f"Retrieving ({self.name})", len(checked)) as bar:
            for start in range(0, len(checked), batch_size):
                batch = checked[start : start + batch_size]
                vectors = self._encode(batch)
                with measure() as meter:
                    ranking = self.rank(batch, vectors, top_k)
                results.extend(self._results(batch, ranking, meter))
                bar.advance(len(batch))
        return results

    @classmethod
    def steps_of(cls, config: Any) -> Mapping[str, Maker]:
        """Those of `steps` that a configuration leaves in."""
        return cls.steps

    @abstractmethod
    def rank(self, queries: Sequence[str], vectors: Tensor, top_k: int) -> Ranking:
        """Rank chunks for one batch.

        Args:
            queries: B texts.
            vectors: float32 [B, d], their unit vectors; [B, 0] where `needs_vectors` is False.
            top_k: columns of the ranking, at most.
        """

    def _encode(self, queries: Sequence[str]) -> Tensor:
        if self.needs_vectors:
            embedder = self.index.embedder
            return checked_vectors(embedder.encode_queries(queries), queries, embedder.name)
        return torch.empty(len(queries), 0, device="cpu")

    def _results(self, queries: Sequence[str], ranking: Ranking, meter: Meter) -> Iterable[RetrievalResult]:
        rows, scores = ranking.chunks.tolist(), ranking.scores.tolist()
        for b, query in enumerate(queries):
            brought = ranking.hit_evidence[b] if ranking.hit_evidence else {}
            hits = tuple(
                self._hit(row, score, brought.get(row, ())) for row, score in zip(rows[b], scores[b]) if row >= 0
            )
            yield RetrievalResult(
                query,
                self.name,
                hits,
                ranking.evidence[b] if ranking.evidence else Evidence(),
                {**(ranking.usage[b] if ranking.usage else {}), **meter.to_dict(query)},
            )

    def _hit(self, row: int, score: float, evidence: Sequence[Item]) -> Hit:
        chunk = self.index.chunks[row]
        return Hit(
            chunk.id,
            chunk.document_id,
            self.index.document_ids[row],
            chunk.start,
            chunk.end,
            score,
            chunk.text,
            chunk.title,
            tuple(evidence),
            chunk.header or None,
        )


def check_queries(queries: Sequence[str]) -> list[str]:
    """The queries as a list.

    Raises:
        InputError: a single string in place of a list, or a query that is not a text or is blank.
    """
    if isinstance(queries, str):
        raise InputError("queries must be a list of texts, not one text; write [query]")
    for position, query in enumerate(queries):
        if not isinstance(query, str) or is_blank(query):
            raise InputError(f"query {position} is {query!r}; a query must be a text that is not blank")
    return list(queries)


def top_chunks(scores: Tensor, top_k: int) -> tuple[Tensor, Tensor]:
    """The best chunks of each row; equal scores go by row number.

    Args:
        scores: float32 [B, C]; -inf marks a chunk that was not retrieved.
        top_k: columns wanted.

    Returns:
        chunks int64 [B, K] padded with -1 and scores float32 [B, K], K = min(top_k, C).
    """
    k = min(top_k, scores.shape[1])
    if k == 0:
        return torch.empty(len(scores), 0, dtype=torch.long), torch.empty(len(scores), 0)
    boundary = scores.topk(k, dim=1).values[:, -1:]
    above = scores > boundary
    level = scores == boundary
    wanted = k - above.sum(1, keepdim=True)
    taken = above | (level & (level.cumsum(1) <= wanted))
    chunks = taken.nonzero()[:, 1].view(len(scores), k)
    values = scores.gather(1, chunks)
    order = values.argsort(dim=1, descending=True, stable=True)
    chunks, values = chunks.gather(1, order), values.gather(1, order)
    return chunks.masked_fill(values == -torch.inf, -1), values


def standardise(scores: Tensor) -> Tensor:
    """Each row of float32 [B, C] to mean 0 and standard deviation 1; a constant row becomes 0."""
    mean = scores.mean(1, keepdim=True)
    deviation = scores.std(1, keepdim=True, unbiased=False)
    return (scores - mean) / deviation.clamp(min=1e-9)
