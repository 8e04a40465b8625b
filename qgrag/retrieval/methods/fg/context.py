"""Weak and strong context of FG-RAG (section 3.2), and the descriptions that it holds."""

from typing import NamedTuple

import torch
from torch import Tensor

from qgrag.graph import CSR, Ragged, expand
from qgrag.graph.ragged import ragged_slots
from qgrag.graph.segments import distinct_in_rows, top_per_group
from qgrag.index.knowledge.build import KnowledgeGraph
from qgrag.index.vectors import VectorIndex
from qgrag.retrieval.steps.paired_dots import paired_dots


class Context(NamedTuple):
    """The entities around each of P (query, entity) pairs.

    Args:
        query: int64 [P].
        entity: int64 [P], E_i.
        weak: P rows, E_w, the entity itself first.
        strong: P rows, E_s without E_w.
        pair: int64 [N], the pair of each node reached.
        node: int64 [N], entities reached from E_w or E_s, each once per pair.
        weight: float32 [N], decay to the power of the hops, and once more for the strong context.
    """

    query: Tensor
    entity: Tensor
    weak: Ragged
    strong: Ragged
    pair: Tensor
    node: Tensor
    weight: Tensor


class Told(NamedTuple):
    """Descriptions of a context, by pair, the most weighty first.

    Args:
        pair: int64 [D].
        query: int64 [D].
        node: int64 [D], whom it describes.
        chunk: int64 [D], who says it.
        weight: float32 [D], of the node.
        relevance: float32 [D], to the query: the passage's cosine, or the text's own.
        texts: D texts.
    """

    pair: Tensor
    query: Tensor
    node: Tensor
    chunk: Tensor
    weight: Tensor
    relevance: Tensor
    texts: list[str]


def expand_context(
    graph: KnowledgeGraph,
    csr: CSR,
    named: tuple[VectorIndex, Tensor],
    entities: Ragged,
    vectors: Tensor,
    *,
    matches: int,
    hops: int,
    max_nodes: int,
    strong: bool,
    decay: float,
) -> Context:
    """Context-aware entity expansion for a batch.

    Args:
        graph: with entity vectors.
        csr: of its triples, undirected.
        named: search over the entities with a vector, and their rows.
        entities: B rows, E_i of each query.
        vectors: float32 [B, d] of the queries, which decide what is kept of a hub's neighbours.
        matches: n.
        hops: depth of both searches.
        max_nodes: entities that a search may reach.
        strong: whether E_s is made and searched from.
        decay: see `Context.weight`.
    """
    query, entity = entities.batch(), entities.values
    pairs = torch.arange(len(entity), device=entity.device)
    near, owner = _match(graph, named, entity, pairs, matches)
    weak = _rows(torch.cat([pairs, owner]), torch.cat([entity, near]), len(entity), graph.num_entities)
    further, by = _match(graph, named, weak.values, weak.batch(), matches if strong else 0)
    beyond = ~torch.isin(by * graph.num_entities + further, weak.batch() * graph.num_entities + weak.values)
    strong_rows = _rows(by[beyond], further[beyond], len(entity), graph.num_entities)

    def closeness(pair: Tensor, node: Tensor) -> Tensor:
        return paired_dots(vectors, query[pair], graph.vectors, node)

    found = []
    for rows, penalty in ((weak, 0), (strong_rows, 1)):
        reached = expand(csr, rows, hops, scores=closeness, max_nodes=max_nodes)
        found.append((reached.nodes.batch(), reached.nodes.values, decay ** (reached.hop + penalty).float()))
    pair, node, weight = (torch.cat(column) for column in zip(*found, strict=True))
    best = top_per_group(pair * graph.num_entities + node, weight, 1)
    return Context(query, entity, weak, strong_rows, pair[best], node[best], weight[best])


def gather_descriptions(graph: KnowledgeGraph, context: Context, vectors: Tensor, passages: Tensor, limit: int) -> Told:
    """Descriptions of all nodes of each context: each text once per pair, at most `limit` per pair.

    Args:
        graph: whose descriptions are read.
        context: of P pairs.
        vectors: float32 [B, d] of the queries.
        passages: float32 [C, d]; the cosine of a description's passage stands for its own until it is
            embedded.
        limit: descriptions kept per pair, by weight times that cosine.
    """
    owner, row = ragged_slots(graph.descriptions_ptr, context.node)
    chunk, text = graph.description_chunk[row], graph.description_text[row]
    pair, weight = context.pair[owner], context.weight[owner]
    cosine = paired_dots(vectors, context.query[pair], passages, chunk)
    value = weight * (1 + cosine)
    once = top_per_group(pair * max(1, len(graph.description_texts)) + text, value, 1)
    kept = once[top_per_group(pair[once], value[once], limit)]
    texts = [graph.description_texts[number] for number in text[kept].tolist()]
    return Told(
        pair[kept],
        context.query[pair[kept]],
        context.node[owner[kept]],
        chunk[kept],
        weight[kept],
        cosine[kept],
        texts,
    )


def _match(
    graph: KnowledgeGraph, named: tuple[VectorIndex, Tensor], entity: Tensor, owner: Tensor, n: int
) -> tuple[Tensor, Tensor]:
    """Match(E, V): the n named entities nearest to each; entity and owner of each match."""
    search, rows = named
    if n == 0 or len(rows) == 0 or len(entity) == 0:
        return entity[:0], owner[:0]
    _, columns = search.search(graph.vectors[entity], min(n, len(rows)))
    found = columns >= 0
    return rows[columns[found]], owner.unsqueeze(1).expand_as(columns)[found]


def _rows(row: Tensor, value: Tensor, num_rows: int, num_values: int) -> Ragged:
    """Distinct values of each row, in order of appearance."""
    kept = distinct_in_rows(row, value, num_values)
    return Ragged.from_batch(value[kept], row[kept], num_rows)
