"""What is known of each candidate before any weight is trained: numbers per candidate and per pair of candidates."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from qgrag.graph import Ragged
from qgrag.models.evidence import EvidenceInputs
from qgrag.retrieval.methods.auto.items import SentenceItems
from qgrag.retrieval.methods.auto.pool import Pool
from qgrag.retrieval.methods.auto.tables import QueryTerms, Tables, query_terms

TOP = 4
"""Candidates, first by their reciprocal ranks, that the others are compared with."""

MEMBER_FEATURES = ("reciprocal", "present", "standardised", "share of best")
POOL_FEATURES = ("found by", "fused", "best place", "cosine", "bm25", "bm25 share")
TEXT_FEATURES = (
    "terms covered",
    "terms covered by a node",
    "terms added to a top",
    "terms added to the first",
    "title named",
    "title covers",
    "title in a top",
    "top's title in it",
    "length",
)
VECTOR_FEATURES = (
    "node cosine",
    "second node cosine",
    "open cosine",
    "open node cosine",
    "open cosine by sentence",
    "open node cosine by sentence",
    "cosine with the first",
    "cosine with a top",
)
ENTITY_FEATURES = (
    "linked entities",
    "title linked",
    "rare entities shared",
    "title mentioned in a top",
    "mentions a top's title",
)
MEMBER_QUESTION_FEATURES = ("serves", "fell back", "agrees", "margin")
PAIR_FEATURES = ("cosine", "rare entities shared", "title mentioned there", "mentions its title", "terms added")


@dataclass(frozen=True)
class Features:
    """Of the K candidates of B questions.

    Args:
        candidate: float32 [B, K, F], columns named by `feature_names`.
        pair: float32 [B, K, K, P], columns of `PAIR_FEATURES`: what column candidate says beside row candidate.
        question: float32 [B, G], about the question and its pool.
        mask: bool [B, K].
    """

    candidate: Tensor
    pair: Tensor
    question: Tensor
    mask: Tensor

    def inputs(self) -> EvidenceInputs:
        """As the model reads them, without texts."""
        return EvidenceInputs(self.candidate, self.pair, self.question, self.mask)


def feature_names(members: Sequence[str]) -> list[str]:
    """Names of the columns of `Features.candidate`."""
    own = [f"{member}: {name}" for member in members for name in MEMBER_FEATURES]
    raw = [*POOL_FEATURES, *TEXT_FEATURES, *VECTOR_FEATURES, *ENTITY_FEATURES]
    compared = [f"{name} ({how})" for how in ("standardised", "place") for name in raw]
    return [*own, *raw, *compared]


def question_names(members: Sequence[str]) -> list[str]:
    """Names of the columns of `Features.question`."""
    per_member = [f"{m}: {name}" for m in members for name in MEMBER_QUESTION_FEATURES]
    return [*per_member, "terms", "entities linked", "best cosine", "best coverage", "pool"]


def make_features(
    tables: Tables,
    pool: Pool,
    queries: Sequence[str],
    vectors: Tensor,
    linked: Ragged | None,
    items: SentenceItems,
) -> Features:
    """Features of a batch of pools.

    Args:
        tables: of the index.
        pool: K candidates of each of B questions.
        queries: B texts.
        vectors: float32 [B, d], their unit vectors.
        linked: entities that each question names; None where the index has no knowledge graph.
        items: the candidates' sentences.
    """
    chunk, mask = pool.chunks.clamp(min=0), pool.mask
    asked = query_terms(queries, tables.chunk_terms)
    stored = tables.index.passages.vectors
    passages = stored[chunk.to(stored.device)].to(vectors.device)
    cosine = (passages * vectors.unsqueeze(1)).sum(-1)
    holds = tables.chunk_terms.holds(asked.ids.unsqueeze(1), pool.chunks.unsqueeze(2))
    covered = (holds * asked.weight.unsqueeze(1)).sum(-1)
    added = _added(holds, asked.weight)
    node_covered, node_columns = _node_features(tables, pool, queries, vectors, passages, items)
    entities, shared, mentions = _entity_features(tables, pool, linked)
    titles = _title_features(tables, pool, asked)
    bm25 = _bm25(tables, pool, queries)
    between = passages @ passages.transpose(1, 2)
    raw = torch.stack(
        [
            *_pool_features(pool, cosine, bm25),
            covered,
            node_covered,
            _best_other(added, mask),
            added[:, :, 0],
            *titles,
            tables.lengths[chunk],
            *node_columns,
            between[:, :, 0],
            _best_other(between, mask),
            *entities,
            _best_other(shared, mask),
            _best_other(mentions.transpose(1, 2), mask),
            _best_other(mentions, mask),
        ],
        dim=-1,
    ).masked_fill(~mask.unsqueeze(-1), 0)
    own = _member_features(pool)
    candidate = torch.cat([own, raw, standardised(raw, mask), places(raw, mask)], dim=-1)
    pair = torch.stack([between, shared, mentions.transpose(1, 2), mentions, added], dim=-1)
    both = mask.unsqueeze(1) & mask.unsqueeze(2)
    question = _question_features(pool, asked, linked, cosine, covered)
    return Features(candidate, pair.masked_fill(~both.unsqueeze(-1), 0), question, mask)


def standardised(values: Tensor, mask: Tensor) -> Tensor:
    """Each column of float32 [B, K, F] to mean 0 and deviation 1 over the candidates of a question."""
    count = mask.sum(1).clamp(min=1).view(-1, 1, 1)
    inside = mask.unsqueeze(-1)
    mean = values.masked_fill(~inside, 0).sum(1, keepdim=True) / count
    off = (values - mean).masked_fill(~inside, 0)
    return off / (off.square().sum(1, keepdim=True) / count).sqrt().clamp(min=1e-4)


def places(values: Tensor, mask: Tensor) -> Tensor:
    """Place of each value among those of its column, from 1 for the highest to 0; equal values share the mean place."""
    inside = mask.unsqueeze(-1)
    filled = values.masked_fill(~inside, -torch.inf)
    ordered = filled.sort(dim=1).values.transpose(1, 2).contiguous()
    wanted = filled.transpose(1, 2).contiguous()
    below = torch.searchsorted(ordered, wanted)
    up_to = torch.searchsorted(ordered, wanted, right=True)
    padding = (~mask).sum(1).view(-1, 1, 1)
    middle = (below + up_to - 1).float() / 2 - padding
    count = (mask.sum(1).view(-1, 1, 1) - 1).clamp(min=1)
    return (middle / count).transpose(1, 2).masked_fill(~inside, 0)


def _best_other(values: Tensor, mask: Tensor) -> Tensor:
    """The highest of float32 [B, K, T] over the first `TOP` candidates, itself apart; bool [B, K] marks candidates."""
    top = min(TOP, values.shape[2])
    first = values[:, :, :top].masked_fill(~mask[:, None, :top], -torch.inf)
    own = torch.arange(top, device=values.device)
    first[:, own, own] = -torch.inf
    best = first.amax(-1)
    return best.masked_fill(best == -torch.inf, 0)


def _added(holds: Tensor, weight: Tensor) -> Tensor:
    """Weight of the question's terms that row candidate holds and column candidate does not, float32 [B, K, K]."""
    held = holds.float()
    return (held * weight.unsqueeze(1)) @ (1 - held).transpose(1, 2)


def _pool_features(pool: Pool, cosine: Tensor, bm25: Tensor) -> list[Tensor]:
    inside = pool.place >= 0
    best = (1 / (1 + pool.place.float())).masked_fill(~inside, 0).amax(-1)
    highest = bm25.amax(1, keepdim=True).clamp(min=1e-6)
    return [inside.float().sum(-1), pool.fused, best, cosine, torch.log1p(bm25), bm25 / highest]


def _bm25(tables: Tables, pool: Pool, queries: Sequence[str]) -> Tensor:
    """BM25 of each candidate, float32 [B, K]; a few questions at a time, since all chunks are scored."""
    rows = max(1, 64 * 2**20 // (4 * max(1, tables.num_chunks)))
    parts = []
    for start in range(0, len(queries), rows):
        scores = tables.index.lexical.scores(queries[start : start + rows]).to(pool.chunks.device)
        parts.append(scores.gather(1, pool.chunks[start : start + rows].clamp(min=0)))
    return torch.cat(parts).masked_fill(~pool.mask, 0)


def _member_features(pool: Pool) -> Tensor:
    inside = pool.place >= 0
    count = pool.found.clamp(min=1).unsqueeze(1)
    held = pool.score.masked_fill(~inside, 0)
    mean = held.sum(1, keepdim=True) / inside.sum(1, keepdim=True).clamp(min=1)
    off = (pool.score - mean).masked_fill(~inside, 0)
    deviation = (off.square().sum(1, keepdim=True) / count).sqrt().clamp(min=1e-6)
    highest = pool.score.masked_fill(~inside, -torch.inf).amax(1, keepdim=True)
    lowest = pool.score.masked_fill(~inside, torch.inf).amin(1, keepdim=True)
    share = (pool.score - lowest) / (highest - lowest).clamp(min=1e-6)
    columns = [
        (1 / (1 + pool.place.float())).masked_fill(~inside, 0),
        inside.float(),
        off / deviation,
        share.masked_fill(~inside, 0),
    ]
    return torch.stack(columns, dim=-1).flatten(2)


def _question_features(pool: Pool, asked: QueryTerms, linked: Ragged | None, cosine: Tensor, covered: Tensor) -> Tensor:
    inside = (pool.place >= 0) & (pool.place < 5)
    fused = torch.zeros_like(pool.mask)
    fused[:, :5] = pool.mask[:, :5]
    agrees = (inside & fused.unsqueeze(-1)).sum(1).float() / 5
    first = pool.score.masked_fill(pool.place != 0, 0).sum(1)
    later = pool.score.masked_fill(pool.place != 4, 0).sum(1)
    margin = (first - later) / first.abs().clamp(min=1e-6)
    serves = pool.present.float().expand_as(agrees)
    own = torch.stack([serves, pool.fallback.float(), agrees, margin.clamp(-2, 2)], dim=-1).flatten(1)
    named = torch.zeros(len(cosine), device=cosine.device) if linked is None else linked.counts().float()
    whole = torch.stack(
        [
            (asked.ids >= 0).sum(1).float() / 10,
            named / 3,
            cosine.masked_fill(~pool.mask, -1).amax(1),
            covered.masked_fill(~pool.mask, 0).amax(1),
            pool.mask.sum(1).float() / 50,
        ],
        dim=-1,
    )
    return torch.cat([own, whole], dim=-1)


def _title_features(tables: Tables, pool: Pool, asked: QueryTerms) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """How much of the title the question names and the title covers of the question; the title's terms in a top
    candidate's text, and a top candidate's title in the text."""
    chunk = pool.chunks.clamp(min=0)
    title = tables.title_terms
    ids, weight = title.ids[chunk], title.weight[chunk]
    in_question = (ids.unsqueeze(-1) == asked.ids[:, None, None, :]) & (ids >= 0).unsqueeze(-1)
    named = (in_question.any(-1) * weight).sum(-1)
    covers = (in_question.any(2) * asked.weight.unsqueeze(1)).sum(-1)
    top = min(TOP, pool.mask.shape[1])
    table = tables.chunk_terms
    there = table.holds(ids.unsqueeze(2), pool.chunks[:, None, :top, None])
    in_top = (there * weight.unsqueeze(2)).sum(-1)
    here = table.holds(ids[:, None, :top], pool.chunks[:, :, None, None])
    of_top = (here * weight[:, None, :top]).sum(-1)
    return named, covers, _best_other(in_top, pool.mask), _best_other(of_top, pool.mask)


def _node_features(
    tables: Tables, pool: Pool, queries: Sequence[str], vectors: Tensor, passages: Tensor, items: SentenceItems
) -> tuple[Tensor, list[Tensor]]:
    """The question's terms that the best item of each candidate holds; and by cosine the two best items, and the best
    passage and item for what a top candidate, by its passage or its best item, leaves open of the question."""
    top = min(TOP, pool.chunks.shape[1])
    zero = torch.zeros(pool.chunks.shape, device=vectors.device)
    if tables.has_nodes:
        asked = query_terms(queries, tables.node_terms)
        held = tables.node_terms.holds(asked.ids[:, None, None, :], items.nodes.unsqueeze(-1))
        covered = (held * asked.weight[:, None, None, :]).sum(-1).amax(-1)
    else:
        covered = zero
    cosine = torch.einsum("bknd,bd->bkn", items.vectors, vectors).masked_fill(~items.mask, 0)
    second = cosine[:, :, 1] if cosine.shape[2] > 1 else zero
    best = items.vectors[:, :, 0]

    def of_items(open_part: Tensor) -> Tensor:
        products = torch.einsum("bknd,btd->bktn", items.vectors, open_part)
        return products.masked_fill(~items.mask.unsqueeze(2), -1).amax(-1)

    def of_passages(open_part: Tensor) -> Tensor:
        return passages @ open_part.transpose(1, 2)

    columns = [
        _best_other(_open_cosines(vectors, told[:, :top], against), pool.mask)
        for told in (passages, best)
        for against in (of_passages, of_items)
    ]
    return covered, [cosine[:, :, 0], second, *columns]


def _open_cosines(vectors: Tensor, told: Tensor, against: Callable[[Tensor], Tensor]) -> Tensor:
    """Cosines with the part of each question's vector that is orthogonal to each of `told`, float32 [B, T, d]."""
    along = (told * vectors.unsqueeze(1)).sum(-1, keepdim=True) / told.square().sum(-1, keepdim=True).clamp(min=1e-9)
    rest = vectors.unsqueeze(1) - along * told
    return against(torch.nn.functional.normalize(rest, dim=-1))


def _entity_features(tables: Tables, pool: Pool, linked: Ragged | None) -> tuple[list[Tensor], Tensor, Tensor]:
    """Share of the linked entities that a candidate mentions and whether its title is one; rare entities that two
    candidates share, and whether row candidate mentions column candidate's title, float32 [B, K, K]."""
    batch, width = pool.chunks.shape
    zero = torch.zeros(batch, width, device=pool.chunks.device)
    square = torch.zeros(batch, width, width, device=pool.chunks.device)
    if linked is None or not tables.has_entities or not len(tables.rarity):
        return [zero, zero.clone()], square, square.clone()
    rarity, title_entity = tables.rarity, tables.title_entity
    query, column = pool.mask.nonzero().unbind(1)
    chunk = pool.chunks[query, column]
    owner, entity = tables.chunk_entities.gather(chunk)
    row, candidate = query[owner], column[owner]
    entities = len(rarity)
    named = torch.unique(linked.batch() * entities + linked.values)
    total = torch.zeros(batch, device=zero.device).index_add_(0, named // entities, rarity[named % entities])
    hit = torch.isin(row * entities + entity, named)
    share = zero.flatten().index_add(0, (row * width + candidate)[hit], rarity[entity[hit]]).view(batch, width)
    share = share / total.clamp(min=1e-6).unsqueeze(1)
    titles = title_entity[pool.chunks.clamp(min=0)].masked_fill(~pool.mask, -1)
    of_question = torch.arange(batch, device=titles.device).unsqueeze(1) * entities + titles.clamp(min=0)
    title_linked = (torch.isin(of_question, named) & (titles >= 0)).float()
    distinct, local = torch.unique(row * entities + entity, return_inverse=True)
    first = torch.searchsorted(distinct, torch.arange(batch, device=distinct.device) * entities)
    place = local - first[row]
    size = int(place.max()) + 1 if len(place) else 1
    incidence = torch.zeros(batch, width, size, device=zero.device)
    incidence[row, candidate, place] = 1.0
    weight = torch.zeros(batch, size, device=zero.device)
    weight[row, place] = rarity[entity] ** 2
    weighted = incidence * weight.unsqueeze(1)
    shared = weighted @ incidence.transpose(1, 2)
    shared = shared / (1 + shared)
    key = torch.where(titles >= 0, of_question, -1)
    at = torch.searchsorted(distinct, key.clamp(min=0)).clamp(max=max(0, len(distinct) - 1))
    known = (key >= 0) & (distinct[at] == key) if len(distinct) else torch.zeros_like(key, dtype=torch.bool)
    slot = (at - first.unsqueeze(1)).clamp(min=0, max=size - 1)
    chosen = incidence.transpose(1, 2).gather(1, slot.unsqueeze(-1).expand(-1, -1, width)).transpose(1, 2)
    mentions = chosen * known.unsqueeze(1) * rarity[titles.clamp(min=0)].unsqueeze(1)
    return [share, title_linked], shared, mentions
