"""Queries joined with what a subgraph holds (QMKGF, section 3.4)."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from qgrag.index.knowledge_graph import KnowledgeGraph
from qgrag.retrieval.entity_linking import EncodeQueries
from qgrag.retrieval.qmkgf_fusion import Fusion


class Expansions(NamedTuple):
    """Searches of a batch of queries, by query.

    Args:
        query: int64 [X].
        kinds: `entity`, `relation` or `triple` of each.
        items: what each query was joined with.
        vectors: float32 [X, d], unit vectors of the joined texts.
    """

    query: Tensor
    kinds: list[str]
    items: list[str]
    vectors: Tensor


def expand_queries(
    queries: Sequence[str],
    vectors: Tensor,
    fusion: Fusion,
    graph: KnowledgeGraph,
    limit: int,
    encode: EncodeQueries,
) -> Expansions:
    """Each query joined with each entity, relation and triple of its fused subgraph, a search of its own.

    Items go in the order of their triples, the closest to the query first: of each triple the text, its ends,
    its relation. At most `limit` a query, so that the cost of encoding is bounded.
    """
    owners, kinds, items = [], [], []
    for number, rows in enumerate(fusion.triples.to_lists()):
        found: dict[tuple[str, str], None] = {}
        texts = graph.triple_texts(rows)
        for row, text in zip(rows, texts, strict=True):
            head, tail = graph.edge_index[:, row].tolist()
            found[("triple", text)] = None
            found[("entity", graph.names[head])] = None
            found[("entity", graph.names[tail])] = None
            found[("relation", graph.relations[row])] = None
        for kind, item in list(found)[:limit]:
            owners.append(number)
            kinds.append(kind)
            items.append(item)
    joined = [f"{queries[owner]} {item}" for owner, item in zip(owners, items, strict=True)]
    made = encode(joined) if joined else vectors[:0]
    return Expansions(torch.tensor(owners, dtype=torch.long), kinds, items, made)
