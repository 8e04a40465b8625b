"""What an index knows of a chunk, as tensors for looking up whole pools: terms, question nodes, entities, title."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from qgrag.graph import Ragged
from qgrag.index.lexical import LexicalIndex
from qgrag.index.reader import Index
from qgrag.index.terms import terms


def invert(row: Tensor, value: Tensor, num_rows: int) -> Ragged:
    """Pairs (row, value) as ragged rows, values in their order."""
    order = torch.argsort(row, stable=True)
    return Ragged.from_batch(value[order], row[order], num_rows)


@dataclass(frozen=True)
class TermTable:
    """Which term stands in which text.

    Args:
        key: int64 [Z], `term * N + text`, ascending.
        size: N, number of texts.
        idf: float32 [V], log(1 + (N - df + 1/2) / (df + 1/2)).
        vocabulary: term -> row.
        tokeniser: version that made the terms.
    """

    key: Tensor
    size: int
    idf: Tensor
    vocabulary: dict[str, int]
    tokeniser: int

    @classmethod
    def of(cls, lexical: LexicalIndex) -> "TermTable":
        counts = lexical.ptr.diff()
        term = Ragged(lexical.text, lexical.ptr).batch()
        key = torch.sort(term * max(1, lexical.size) + lexical.text.long()).values
        idf = torch.log(1 + (lexical.size - counts + 0.5) / (counts + 0.5))
        return cls(key, max(1, lexical.size), idf.float(), lexical.vocabulary, lexical.tokeniser)

    def holds(self, term: Tensor, text: Tensor) -> Tensor:
        """Whether each term, int64, stands in each text, int64 of the same or a broadcast shape; -1 stands nowhere."""
        term, text = torch.broadcast_tensors(term, text)
        if not len(self.key):
            return torch.zeros_like(term, dtype=torch.bool)
        key = term * self.size + text
        place = torch.searchsorted(self.key, key.contiguous()).clamp_(max=len(self.key) - 1)
        return (self.key[place] == key) & (term >= 0) & (text >= 0)


@dataclass(frozen=True)
class QueryTerms:
    """Distinct known terms of B texts.

    Args:
        ids: int64 [B, L], rows of a vocabulary, padded with -1.
        weight: float32 [B, L], inverse document frequencies that add up to 1 per text; 0 in the padding.
    """

    ids: Tensor
    weight: Tensor


def query_terms(texts: Sequence[str], table: TermTable) -> QueryTerms:
    """The terms of each text that any text of the index holds."""
    rows = [
        list(dict.fromkeys(table.vocabulary[t] for t in terms(text, table.tokeniser) if t in table.vocabulary))
        for text in texts
    ]
    width = max(1, *map(len, rows)) if rows else 1
    ids = torch.tensor([row + [-1] * (width - len(row)) for row in rows], dtype=torch.long).view(-1, width)
    weight = table.idf[ids.clamp(min=0)] if len(table.idf) else torch.zeros(ids.shape)
    weight = weight.masked_fill(ids < 0, 0)
    return QueryTerms(ids, weight / weight.sum(1, keepdim=True).clamp(min=1e-9))


class Tables:
    """Lookups over one index, each made when first used.

    Args:
        index: open.
    """

    def __init__(self, index: Index) -> None:
        self.index = index
        self.num_chunks = len(index.chunks)
        self.has_nodes = index.manifest.config["query_graph"] is not None
        self.has_entities = index.manifest.config["knowledge_graph"] is not None

    @cached_property
    def lengths(self) -> Tensor:
        """log(1 + characters) / 10 of each chunk, float32 [C]."""
        return torch.tensor([len(chunk.text) for chunk in self.index.chunks], dtype=torch.float32).log1p() / 10

    @cached_property
    def chunk_terms(self) -> TermTable:
        return TermTable.of(self.index.lexical)

    @cached_property
    def node_terms(self) -> TermTable:
        return TermTable.of(self.index.query_graph.lexical)

    @cached_property
    def chunk_nodes(self) -> Ragged:
        """Question nodes of each chunk."""
        node, chunk = self.index.query_graph.membership
        return invert(chunk, node, self.num_chunks)

    @cached_property
    def title_terms(self) -> QueryTerms:
        """Terms of each chunk's title, one row per chunk."""
        return query_terms([chunk.title for chunk in self.index.chunks], self.chunk_terms)

    @cached_property
    def chunk_entities(self) -> Ragged:
        """Entities that each chunk mentions."""
        entity, chunk = self.index.knowledge_graph.mention_index
        return invert(chunk, entity, self.num_chunks)

    @cached_property
    def title_entity(self) -> Tensor:
        """The entity that each chunk's title is, int64 [C]; -1 where it is none."""
        graph = self.index.knowledge_graph
        entity, chunk = graph.mention_index[:, graph.mention_titled]
        out = torch.full((self.num_chunks,), -1, dtype=torch.long)
        out[chunk] = entity
        return out

    @cached_property
    def rarity(self) -> Tensor:
        """See `KnowledgeGraph.rarity`, float32 [E]."""
        return self.index.knowledge_graph.rarity(self.num_chunks)
