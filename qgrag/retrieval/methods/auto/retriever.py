"""`auto`: what several retrievers find is pooled; reciprocal ranks or an evidence model choose from the pool."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from qgrag.errors import ConfigError, MissingComponentError
from qgrag.graph import Ragged
from qgrag.index.reader import Index
from qgrag.models.embedder import TokenStates
from qgrag.models.evidence import EvidenceInputs
from qgrag.models.evidence_checkpoint import EvidenceCheckpoint, read_evidence_model
from qgrag.retrieval.base import Ranking, Retriever
from qgrag.retrieval.evidence.base import Evidence, Item
from qgrag.retrieval.evidence.items import Contribution, ReasonItem
from qgrag.retrieval.evidence.records import AutoEvidence
from qgrag.retrieval.linking.linker import EntityLinker, EntityLinkerConfig
from qgrag.retrieval.methods.auto.features import PAIR_FEATURES, feature_names, make_features, question_names
from qgrag.retrieval.methods.auto.items import SentenceItems, sentence_items
from qgrag.retrieval.methods.auto.pool import DEPTH, MEMBERS, SIZE, Pool, gather_pool
from qgrag.retrieval.methods.auto.tables import Tables
from qgrag.retrieval.methods.ensemble import votes

logger = logging.getLogger(__name__)

SENTENCES = 2
CONTRIBUTIONS = 6


@dataclass(frozen=True)
class AutoConfig:
    """Args:
    model: folder of an evidence model that `qgrag train evidence` wrote; empty orders the pool by reciprocal ranks.
    members: retrievers that make the pool, among those that the model knows; empty takes all of them, and without a
        model those of `MEMBERS`.
    reasons: hits of each question whose features are weighed; each costs one backward pass.
    block: questions scored at once; bounds memory to about 20 MiB per question.
    linking: how names become entities.
    """

    model: str = ""
    members: tuple[str, ...] = ()
    reasons: int = 0
    block: int = 32
    linking: EntityLinkerConfig = field(default_factory=EntityLinkerConfig)

    def __post_init__(self) -> None:
        if self.reasons < 0 or self.block < 1:
            raise ConfigError(f"auto: reasons must be 0 or more and block at least 1, not {self.reasons}, {self.block}")


class AutoRetriever(Retriever):
    """The retriever to begin with on any corpus: it needs no choice of a method.

    Candidates come from all members that the index can serve; where it lacks a graph, from those that are left. The
    evidence model sees them together, so that a second hop is scored given the first; its scores are logits of 'this
    is evidence'. Without a model, scores are sums of reciprocal ranks. A hit's evidence is the place that each member
    gave it, with the member's own evidence, and the sentences and features that speak for it. A `top_k` beyond the
    depth of the pool makes a deeper pool, whose first hits may differ.

    Args:
        index: what is searched.
        config: see there.
    """

    name = "auto"
    Config = AutoConfig

    def __init__(self, index: Index, config: AutoConfig | None = None) -> None:
        super().__init__(index)
        self.config = config or AutoConfig()
        self.checkpoint = _load_model(Path(self.config.model)) if self.config.model else None
        known = self.checkpoint.members if self.checkpoint else self.config.members or MEMBERS
        self.depth, self.size = (self.checkpoint.depth, self.checkpoint.size) if self.checkpoint else (DEPTH, SIZE)
        self.members = load_members(index, known, self.config.members)
        self.tables = Tables(index)

    @property
    def left_out(self) -> tuple[str, ...]:
        """Members of the model that the index cannot serve, or that the configuration leaves out."""
        return tuple(name for name, member in self.members.items() if member is None)

    @cached_property
    def _linker(self) -> EntityLinker | None:
        return EntityLinker(self.index.knowledge_graph, self.config.linking) if self.tables.has_entities else None

    def rank(self, queries: Sequence[str], vectors: Tensor, top_k: int) -> Ranking:
        rankings = rank_members(self.members, queries, vectors, max(self.depth, top_k))
        pool, chunks, scores, reasons = self._score(rankings, queries, vectors, top_k)
        evidence = [self._record(rankings, pool, b) for b in range(len(queries))]
        brought: list[dict[int, list[Item]]] = [
            {chunk: [told[chunk], *own] for chunk, own in found.items()}
            for told, found in zip(reasons, votes(self.members, rankings, chunks), strict=True)
        ]
        return Ranking(chunks, scores, evidence, brought)

    @torch.no_grad()
    def _score(
        self, rankings: Sequence[Ranking | None], queries: Sequence[str], vectors: Tensor, top_k: int
    ) -> tuple[Pool, Tensor, Tensor, list[dict[int, ReasonItem]]]:
        """The pool, the chunks chosen from it, int64 [B, k], their scores, float32 [B, k], and the reasons for each."""
        pool = gather_pool(rankings, len(queries), self.tables.num_chunks, max(self.size, top_k))
        chunks, scores, reasons = [], [], []
        for start in range(0, len(queries), self.config.block):
            rows = slice(start, start + self.config.block)
            part = pool.rows(rows)
            items = sentence_items(self.tables, part, vectors[rows])
            if self.checkpoint is None:
                found = part.fused.masked_fill(~part.mask, -torch.inf)
                chance = moved = None
                order = _best(found, top_k)
            else:
                inputs = self._inputs(part, items, queries[rows], vectors[rows])
                found = self.checkpoint.model(inputs)
                order = _best(found, top_k)
                chance = found.sigmoid()
                moved = _contributions(self.checkpoint, inputs, order[:, : self.config.reasons])
            chunks.append(part.chunks.gather(1, order))
            scores.append(found.gather(1, order))
            reasons += self._reasons(part, items, order, chance, moved)
        if not chunks:
            return pool, pool.chunks, vectors.new_empty(pool.chunks.shape), reasons
        return pool, torch.cat(chunks), torch.cat(scores), reasons

    def _inputs(self, pool: Pool, items: SentenceItems, queries: Sequence[str], vectors: Tensor) -> EvidenceInputs:
        """What the model reads of a block of pools."""
        assert self.checkpoint is not None
        linked = link(self._linker, self.index, queries)
        inputs = make_features(self.tables, pool, queries, vectors, linked, items).inputs()
        if self.checkpoint.model.config.text == "none":
            return inputs
        states = token_states(self.index, queries)
        return inputs.with_text(states.vectors, states.mask, items.vectors, items.mask)

    def _reasons(
        self,
        pool: Pool,
        items: SentenceItems,
        order: Tensor,
        chance: Tensor | None,
        moved: Sequence[Sequence[tuple[Contribution, ...]]] | None,
    ) -> list[dict[int, ReasonItem]]:
        """Of each question the reasons of the candidates in `order`, int64 [B, k], by chunk."""
        told: list[dict[int, ReasonItem]] = []
        for b, row in enumerate(order.tolist()):
            own: dict[int, ReasonItem] = {}
            for place, column in enumerate(row):
                chunk = int(pool.chunks[b, column])
                if chunk >= 0:
                    weighed = moved[b][place] if moved and place < len(moved[b]) else ()
                    probability = None if chance is None else float(chance[b, column])
                    own[chunk] = ReasonItem(probability, self._sentences(items, b, column), weighed)
            told.append(own)
        return told

    def _sentences(self, items: SentenceItems, query: int, column: int) -> tuple[str, ...]:
        """Texts of the candidate's items nearest to the question, each sentence once."""
        nodes = [node for node in items.nodes[query, column].tolist() if node >= 0]
        if not nodes:
            return ()
        graph = self.index.query_graph
        pairs = graph.pairs.take(graph.first_pair[torch.tensor(nodes)].numpy()).to_pylist()
        return tuple(dict.fromkeys(pair["sentence"] for pair in pairs))[:SENTENCES]

    def _record(self, rankings: Sequence[Ranking | None], pool: Pool, query: int) -> AutoEvidence:
        members = {
            name: ranking.evidence[query] if ranking.evidence else Evidence()
            for name, ranking in zip(self.members, rankings, strict=True)
            if ranking is not None
        }
        return AutoEvidence(members, int(pool.mask[query].sum()), self.left_out)


def _best(scores: Tensor, top_k: int) -> Tensor:
    """Columns of the `top_k` best scores, int64 [B, k]; of equal ones the first."""
    return scores.argsort(dim=1, descending=True, stable=True)[:, :top_k]


def _load_model(folder: Path) -> EvidenceCheckpoint:
    checkpoint = read_evidence_model(folder)
    config = checkpoint.model.config
    widths = config.question_features, config.pair_features
    known = len(question_names(checkpoint.members)), len(PAIR_FEATURES)
    if feature_names(checkpoint.members) != list(checkpoint.features) or widths != known:
        raise ConfigError(
            f"{folder}: was trained on other features than this version computes; train it again "
            "(qgrag data evidence, then qgrag train evidence)"
        )
    return checkpoint


def _contributions(
    checkpoint: EvidenceCheckpoint, inputs: EvidenceInputs, order: Tensor
) -> list[list[tuple[Contribution, ...]]]:
    """Gradient times input of the features of each candidate in `order`, int64 [B, R]; one backward pass per rank."""
    told: list[list[tuple[Contribution, ...]]] = [[] for _ in range(len(order))]
    rows = torch.arange(len(order), device=order.device)
    for rank in range(order.shape[1]):
        candidate = inputs.candidate.detach().requires_grad_()
        with torch.enable_grad():
            logits = checkpoint.model(inputs.with_candidate(candidate))
            (slope,) = torch.autograd.grad(logits[rows, order[:, rank]].sum(), candidate)
        part = (slope * (candidate.detach() - checkpoint.model.mean))[rows, order[:, rank]]
        best = part.abs().topk(min(CONTRIBUTIONS, part.shape[1]), dim=1).indices
        for b, columns in enumerate(best.tolist()):
            told[b].append(tuple(Contribution(checkpoint.features[c], float(part[b, c])) for c in columns))
    return told


def load_members(index: Index, known: Sequence[str], wanted: Sequence[str] = ()) -> dict[str, Retriever | None]:
    """The members of a pool; None for one that is not wanted or that the index lacks the graph for.

    Args:
        index: what is searched.
        known: members in the order of the model's features.
        wanted: those among them that are used; all if empty.

    Raises:
        ConfigError: a wanted member is not known, or none is left.
    """
    from qgrag.retrieval.registry import load_retriever

    if unknown := [name for name in wanted if name not in known]:
        raise ConfigError(f"auto.members: the model knows {', '.join(known)}, but not {', '.join(unknown)}")
    members: dict[str, Retriever | None] = {}
    for name in known:
        members[name] = None
        if not wanted or name in wanted:
            try:
                members[name] = load_retriever(index, name)
            except MissingComponentError as error:
                logger.info("auto goes without %s: %s", name, error)
    if not any(members.values()):
        raise ConfigError(f"auto: the index can serve none of its members {', '.join(wanted or known)}")
    return members


def rank_members(
    members: dict[str, Retriever | None], queries: Sequence[str], vectors: Tensor, depth: int
) -> list[Ranking | None]:
    """The first `depth` chunks of each member; None for one that is not there."""
    return [None if member is None else member.rank(queries, vectors, depth) for member in members.values()]


def token_states(index: Index, queries: Sequence[str]) -> TokenStates:
    """States of the questions' tokens.

    Raises:
        ConfigError: the index's embedding model gives none, such as one behind an endpoint.
    """
    embedder: Any = index.embedder
    if not hasattr(embedder, "encode_query_tokens"):
        raise ConfigError(
            f"the evidence model reads token states, which {index.embedder.name!r} does not give; take a model "
            "that was trained with text: none"
        )
    states: TokenStates = embedder.encode_query_tokens(queries)
    return states


def link(linker: EntityLinker | None, index: Index, queries: Sequence[str]) -> Ragged | None:
    """The entities that each question names; None where the index has no knowledge graph."""
    if linker is None:
        return None
    links = linker.link_queries(queries, index.embedder.encode)
    return Ragged.from_lists([[one.entity for one in row] for row in links])
