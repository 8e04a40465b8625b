"""Several retrievers' rankings fused into one."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor

from qgrag.errors import ConfigError
from qgrag.graph.segments import pool_pairs, top_pairs
from qgrag.index.reader import Index
from qgrag.llm.model import LanguageModel
from qgrag.llm.prompts import Prompts
from qgrag.retrieval.base import Maker, Ranking, Retriever, standardise
from qgrag.retrieval.evidence.base import Evidence
from qgrag.retrieval.evidence.items import VoteItem
from qgrag.retrieval.evidence.records import EnsembleEvidence


@dataclass(frozen=True)
class EnsembleConfig:
    """Which rankings are fused, and how.

    Args:
        members: names of retrievers, or YAML files that configure them; evidence and usage call them so.
        weights: one per member; where empty, each member has 1.
        fusion: `rank` adds weight / (k + rank), the reciprocal rank fusion of Cormack et al. (2009); `score` adds
            weight times the member's scores, standardised over the chunks that it found for the query, those that it
            did not find counting as its lowest.
        k: constant of the rank fusion; small values trust the first places more.
        depth: chunks taken per member.
    """

    members: tuple[str, ...] = ("dual", "qcg")
    weights: tuple[float, ...] = ()
    fusion: Literal["rank", "score"] = "rank"
    k: float = 2.0
    depth: int = 50

    def __post_init__(self) -> None:
        if len(set(self.members)) < max(2, len(self.members)):
            raise ConfigError(
                f"ensemble.members must name two retrievers at least, each once, not {list(self.members)}"
            )
        if self.weights and len(self.weights) != len(self.members):
            raise ConfigError(
                f"ensemble.weights must have one weight for each of the {len(self.members)} members, "
                f"not {len(self.weights)}"
            )
        if any(weight < 0 for weight in self.weights) or (self.weights and not any(self.weights)):
            raise ConfigError(f"ensemble.weights must be 0 or more and not all 0, not {list(self.weights)}")
        if self.k < 0 or self.depth < 1:
            raise ConfigError(f"ensemble.k must be 0 or more and depth at least 1, not {self.k} and {self.depth}")


class EnsembleRetriever(Retriever):
    """Chunks by what several retrievers think of them.

    Args:
        index: what is searched.
        config: see there.
        members: retrievers in place of those that `config.members` names, in their order.
        model: takes the steps of the named members that a language model can take.
        prompts: what it is asked with.
    """

    name = "ensemble"
    Config = EnsembleConfig
    steps: ClassVar[Mapping[str, Maker]] = {
        "model": lambda model, prompts, config: model,
        "prompts": lambda model, prompts, config: prompts,
    }

    def __init__(
        self,
        index: Index,
        config: EnsembleConfig | None = None,
        *,
        members: Sequence[Retriever] | None = None,
        model: LanguageModel | None = None,
        prompts: Prompts | None = None,
    ) -> None:
        super().__init__(index)
        self.config = config or EnsembleConfig()
        self.members = list(members) if members is not None else self._load(model, prompts)
        if len(self.members) != len(self.config.members):
            raise ConfigError(f"{len(self.config.members)} members are named, but {len(self.members)} are given")
        self.weights = self.config.weights or (1.0,) * len(self.members)

    def _load(self, model: LanguageModel | None, prompts: Prompts | None) -> list[Retriever]:
        from qgrag.retrieval.registry import load_retriever

        if self.name in self.config.members:
            raise ConfigError("ensemble.members may not hold the ensemble itself")
        return [load_retriever(self.index, name, model=model, prompts=prompts) for name in self.config.members]

    def rank(self, queries: Sequence[str], vectors: Tensor, top_k: int) -> Ranking:
        depth = max(self.config.depth, top_k)
        rankings = [member.rank(queries, vectors, depth) for member in self.members]
        parts = [_votes(ranking, weight, self.config) for ranking, weight in zip(rankings, self.weights, strict=True)]
        query, chunk, vote = (torch.cat(column) for column in zip(*parts, strict=True))
        query, chunk, score = pool_pairs(query, chunk, vote, len(self.index.chunks), "sum")
        chunks, scores = top_pairs(query, chunk, score, len(queries), top_k)
        evidence = [
            EnsembleEvidence(
                {m: r.evidence[b] if r.evidence else Evidence() for m, r in zip(self.config.members, rankings)}
            )
            for b in range(len(queries))
        ]
        return Ranking(
            chunks, scores, evidence, votes(self.config.members, rankings, chunks), self._usage(rankings, len(queries))
        )

    def _usage(self, rankings: Sequence[Ranking], size: int) -> list[dict[str, Any]]:
        return [
            {member: r.usage[b] for member, r in zip(self.config.members, rankings) if r.usage and r.usage[b]}
            for b in range(size)
        ]


def votes(
    members: Iterable[str], rankings: Sequence[Ranking | None], chunks: Tensor
) -> list[dict[int, list[VoteItem]]]:
    """Of each chunk the place that every member gave it, with the member's own evidence.

    Args:
        members: their names.
        rankings: of each of them, over the same B queries; None for a member that takes no part.
        chunks: int64 [B, K], padded with -1.
    """
    present = [(name, ranking) for name, ranking in zip(members, rankings, strict=True) if ranking is not None]
    places = [[{c: p for p, c in enumerate(row) if c >= 0} for row in r.chunks.tolist()] for _, r in present]
    return [
        {
            chunk: [
                VoteItem(
                    name,
                    place[query][chunk] + 1,
                    tuple(ranking.hit_evidence[query].get(chunk, ()) if ranking.hit_evidence else ()),
                )
                for (name, ranking), place in zip(present, places, strict=True)
                if chunk in place[query]
            ]
            for chunk in row
            if chunk >= 0
        }
        for query, row in enumerate(chunks.tolist())
    ]


def _votes(ranking: Ranking, weight: float, config: EnsembleConfig) -> tuple[Tensor, Tensor, Tensor]:
    """What a member's ranking counts: query, chunk and vote of every chunk that it found."""
    found = ranking.chunks >= 0
    query, place = found.nonzero().unbind(1)
    if config.fusion == "rank":
        vote = weight / (config.k + place.float() + 1)
    else:
        vote = weight * _standardised(ranking.scores, found)[found]
    return query, ranking.chunks[found], vote


def _standardised(scores: Tensor, found: Tensor) -> Tensor:
    """Scores of what was found to mean 0 and deviation 1 a row, then shifted so that the lowest is 0."""
    lowest = scores.masked_fill(~found, torch.inf).amin(1, keepdim=True)
    filled = torch.where(found, scores, lowest.nan_to_num(posinf=0.0))
    scaled = standardise(filled)
    return scaled - scaled.amin(1, keepdim=True)
