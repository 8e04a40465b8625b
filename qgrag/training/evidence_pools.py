"""Pools of candidates with their features and which of them are gold, as the evidence model is trained on them."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from qgrag.errors import InputError
from qgrag.files import whole_file
from qgrag.index.reader import Index
from qgrag.models.evidence import EvidenceInputs
from qgrag.progress import progress
from qgrag.retrieval.linking.linker import EntityLinker
from qgrag.retrieval.methods.auto.features import feature_names, make_features
from qgrag.retrieval.methods.auto.items import sentence_items
from qgrag.retrieval.methods.auto.pool import DEPTH, MEMBERS, SIZE, Pool, gather_pool
from qgrag.retrieval.methods.auto.retriever import link, load_members, rank_members, token_states
from qgrag.retrieval.methods.auto.tables import Tables
from qgrag.training.gold_pairs import GoldQuestion

FORMAT = "qgrag-evidence-pools"
BLOCK = 32
LIMIT = 1000.0
"""Features are kept in float16, and cut off here."""


@dataclass(frozen=True)
class EvidencePools:
    """N questions with K candidates each.

    Args:
        candidate: float16 [N, K, F].
        pair: float16 [N, K, K, P].
        question: float32 [N, G].
        mask: bool [N, K].
        gold: int16 [N, K], number of the gold document that a candidate belongs to, from 1; 0 for none.
        wanted: int16 [N], number of distinct gold documents, in the pool or not.
        members: retrievers that made the pools.
        features: names of the columns of `candidate`.
        depth: chunks taken of each member.
        size: candidates per pool, at most.
        tokens: float16 [N, L, d], states of the questions' tokens; None in pools without texts.
        token_mask: bool [N, L].
        items: float16 [N, K, n, d], vectors of the candidates' sentences.
        item_mask: bool [N, K, n].
    """

    candidate: Tensor
    pair: Tensor
    question: Tensor
    mask: Tensor
    gold: Tensor
    wanted: Tensor
    members: tuple[str, ...]
    features: tuple[str, ...]
    depth: int
    size: int
    tokens: Tensor | None = None
    token_mask: Tensor | None = None
    items: Tensor | None = None
    item_mask: Tensor | None = None

    def __len__(self) -> int:
        return len(self.question)

    @property
    def has_text(self) -> bool:
        """Whether token states and sentences are there."""
        return self.tokens is not None

    @property
    def ceiling(self) -> float:
        """Share of the gold documents that the pools hold, mean over questions."""
        held = [len(set(row.tolist()) - {0}) / max(1, int(n)) for row, n in zip(self.gold, self.wanted, strict=True)]
        return sum(held) / max(1, len(held))

    def take(self, rows: Sequence[int]) -> "EvidencePools":
        """Some of the questions."""
        at = torch.tensor(rows, dtype=torch.long)
        taken: dict[str, Any] = {name: value[at] for name, value in self.tensors()}
        return replace(self, **taken)

    def tensors(self) -> Iterator[tuple[str, Tensor]]:
        """The fields that are tensors, by name."""
        for one in fields(self):
            value = getattr(self, one.name)
            if isinstance(value, Tensor):
                yield one.name, value

    def inputs(self) -> EvidenceInputs:
        """What the model reads, in float32."""
        inputs = EvidenceInputs(self.candidate.float(), self.pair.float(), self.question, self.mask)
        if self.tokens is None or self.token_mask is None or self.items is None or self.item_mask is None:
            return inputs
        return inputs.with_text(self.tokens.float(), self.token_mask, self.items.float(), self.item_mask)


def draw_pools(
    index: Index,
    questions: Sequence[GoldQuestion],
    *,
    members: Sequence[str] = MEMBERS,
    depth: int = DEPTH,
    size: int = SIZE,
    text: bool = False,
) -> EvidencePools:
    """The pools that `auto` makes for the questions, with their gold.

    Args:
        index: holds the gold documents.
        questions: with gold, at least one.
        members: retrievers; one that the index cannot serve is marked as absent.
        depth: chunks taken of each.
        size: candidates per pool, at most.
        text: also keep the token states of the questions and the sentences of the candidates.

    Raises:
        InputError: there is no question, or one names a document that the index does not hold.
    """
    if not questions:
        raise InputError("there are no questions to draw pools for")
    members = tuple(dict.fromkeys(members))
    rows_of = chunk_rows(index)
    for question in questions:
        if missing := [name for name in question.documents if name not in rows_of]:
            raise InputError(f"question {question.text!r}: the index holds no document {missing[0]!r}")
    loaded, tables = load_members(index, members), Tables(index)
    linker = EntityLinker(index.knowledge_graph) if tables.has_entities else None
    texts = [question.text for question in questions]
    vectors = index.embedder.encode_queries(texts)
    parts = []
    with progress("Drawing pools", len(questions)) as bar:
        for start in range(0, len(questions), BLOCK):
            rows = slice(start, start + BLOCK)
            rankings = rank_members(loaded, texts[rows], vectors[rows], depth)
            pool = gather_pool(rankings, len(texts[rows]), tables.num_chunks, size)
            items = sentence_items(tables, pool, vectors[rows])
            linked = link(linker, index, texts[rows])
            features = make_features(tables, pool, texts[rows], vectors[rows], linked, items)
            gold, wanted = _gold(pool, questions[rows], rows_of)
            held: dict[str, Tensor] = {}
            if text:
                states = token_states(index, texts[rows])
                held = {"tokens": states.vectors.half(), "token_mask": states.mask}
                held |= {"items": items.vectors.half(), "item_mask": items.mask}
            candidate = features.candidate.clamp(-LIMIT, LIMIT).half()
            parts.append(
                {
                    "candidate": candidate,
                    "pair": features.pair.half(),
                    "question": features.question,
                    "mask": features.mask,
                    "gold": gold,
                    "wanted": wanted,
                    **held,
                }
            )
            bar.advance(len(texts[rows]))
    joined = {name: _joined([part[name] for part in parts]) for name in parts[0]}
    return EvidencePools(
        **joined, members=tuple(members), features=tuple(feature_names(members)), depth=depth, size=size
    )


def join_pools(parts: Sequence[EvidencePools]) -> EvidencePools:
    """Questions of several pools of the same members and features, padded to the widest and cut to what is filled."""
    joined: dict[str, Any] = {name: _joined([getattr(part, name) for part in parts]) for name, _ in parts[0].tensors()}
    width = int(joined["mask"].sum(1).max()) if len(joined["mask"]) else 0
    for name in ("candidate", "mask", "gold", "items", "item_mask"):
        if name in joined:
            joined[name] = joined[name][:, :width]
    joined["pair"] = joined["pair"][:, :width, :width]
    return replace(parts[0], **joined)


def chunk_rows(index: Index) -> dict[str, list[int]]:
    """Rows of the chunks of each document, by any of its ids."""
    rows: dict[str, list[int]] = {}
    for row, ids in enumerate(index.document_ids):
        for name in ids:
            rows.setdefault(name, []).append(row)
    return rows


def save_pools(path: Path, pools: EvidencePools) -> None:
    """Write a safetensors file; what is no tensor stands in its header."""
    path.parent.mkdir(parents=True, exist_ok=True)
    header = {
        "format": FORMAT,
        "members": json.dumps(pools.members),
        "features": json.dumps(pools.features),
        "depth": str(pools.depth),
        "size": str(pools.size),
    }
    with whole_file(path) as aside:
        save_file({name: value.contiguous() for name, value in pools.tensors()}, aside, metadata=header)


def load_pools(path: Path) -> EvidencePools:
    """Read what `save_pools` wrote.

    Raises:
        InputError: there is no such file, or it holds something else.
    """
    if not path.is_file():
        raise InputError(f"{path}: no such file; qgrag data evidence INDEX --out FOLDER writes one")
    try:
        with safe_open(path, framework="pt") as file:
            header = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        if header.get("format") != FORMAT:
            raise InputError(f"{path}: holds no evidence pools")
        return EvidencePools(
            **tensors,
            members=tuple(json.loads(header["members"])),
            features=tuple(json.loads(header["features"])),
            depth=int(header["depth"]),
            size=int(header["size"]),
        )
    except (SafetensorError, KeyError, TypeError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{path}: damaged evidence pools: {error}") from error


def _gold(pool: Pool, questions: Sequence[GoldQuestion], rows_of: dict[str, list[int]]) -> tuple[Tensor, Tensor]:
    gold = torch.zeros(pool.chunks.shape, dtype=torch.int16)
    for b, question in enumerate(questions):
        number = {row: n for n, rows in enumerate(distinct_gold(question, rows_of), start=1) for row in rows}
        gold[b] = torch.tensor([number.get(chunk, 0) for chunk in pool.chunks[b].tolist()], dtype=torch.int16)
    wanted = [len(distinct_gold(question, rows_of)) for question in questions]
    return gold, torch.tensor(wanted, dtype=torch.int16)


def distinct_gold(question: GoldQuestion, rows_of: dict[str, list[int]]) -> list[tuple[int, ...]]:
    """Rows of the chunks of each gold document; two ids of one text are one document."""
    return list(dict.fromkeys(tuple(rows_of[name]) for name in question.documents))


def _joined(parts: Sequence[Tensor]) -> Tensor:
    """Blocks one after another, each padded with zeros to the widest."""
    shape = [max(sizes) for sizes in zip(*(part.shape[1:] for part in parts), strict=True)]
    out = parts[0].new_zeros(sum(map(len, parts)), *shape)
    start = 0
    for part in parts:
        inside = tuple(slice(0, size) for size in part.shape[1:])
        out[(slice(start, start + len(part)), *inside)] = part
        start += len(part)
    return out
