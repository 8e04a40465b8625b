"""Queries joined with what a subgraph holds (QMKGF, section 3.4)."""

from collections.abc import Sequence
from itertools import islice
from typing import Literal, NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import normalize

from qgrag.index.knowledge.build import KnowledgeGraph
from qgrag.retrieval.evidence.items import SearchItem
from qgrag.retrieval.linking.link import Encode
from qgrag.retrieval.methods.qmkgf.fusion import Fusion

Join = Literal["vectors", "text"]
KINDS: tuple[Literal["entity", "relation", "triple"], ...] = ("entity", "relation", "triple")
ENTITY, RELATION, TRIPLE = range(3)


class Expansions(NamedTuple):
    """X searches of a batch of queries, by query.

    Args:
        query: int64 [X].
        items: what each query was joined with.
        vectors: float32 [X, d], unit vectors of the joined queries.
    """

    query: Tensor
    items: list[SearchItem]
    vectors: Tensor


def expand_queries(
    queries: Sequence[str],
    vectors: Tensor,
    fusion: Fusion,
    graph: KnowledgeGraph,
    limit: int,
    encode: Encode,
    join: Join,
) -> Expansions:
    """Each query joined with each entity, relation and triple of its fused subgraph, a search of its own.

    Items go in the order of their triples, the closest to the query first: of each triple the text, its ends,
    its relation. At most `limit` per query.

    Args:
        queries: B texts.
        vectors: float32 [B, d], their unit vectors.
        fusion: of each query.
        graph: of the index.
        limit: searches per query, at most.
        encode: texts -> unit vectors: queries where `join` is `text`, else names, as the graph's were encoded.
        join: `text` encodes the query and the item as one text; `vectors` adds their unit vectors, which costs
            the encoder nothing where the graph holds the item's vector.
    """
    owners, kinds, sources, items = [], [], [], []
    triples = fusion.triples.values
    heads, tails = graph.edge_index[:, triples].tolist()
    columns = (graph.triple_texts(triples.tolist()), heads, tails, graph.relation_ids[triples].tolist())
    statements = enumerate(zip(*columns, strict=True))
    for number, count in enumerate(fusion.triples.counts().tolist()):
        found: dict[tuple[int, str], int] = {}
        for place, (text, head, tail, relation) in islice(statements, count):
            found.setdefault((TRIPLE, text), place)
            found.setdefault((ENTITY, graph.names[head]), head)
            found.setdefault((ENTITY, graph.names[tail]), tail)
            found.setdefault((RELATION, graph.relation_names[relation]), relation)
        for (kind, item), source in list(found.items())[:limit]:
            owners.append(number)
            kinds.append(kind)
            items.append(item)
            sources.append(source)
    query = _long(owners)
    if join == "text":
        made = encode([f"{queries[owner]} {item}" for owner, item in zip(owners, items, strict=True)])
    else:
        made = _item_vectors(_long(kinds), _long(sources), items, fusion, graph, encode)
        made = normalize(vectors[query] + made, dim=1)
    searches = []
    for kind, source, text in zip(kinds, sources, items, strict=True):
        if kind == TRIPLE:
            head, tail, row = heads[source], tails[source], int(triples[source])
            ends = (graph.names[head], graph.names[tail])
            search = SearchItem("triple", text, *ends, item_row=row, head_row=head, tail_row=tail)
        else:
            search = SearchItem(KINDS[kind], text, item_row=source)
        searches.append(search)
    return Expansions(query, searches, made)


def _item_vectors(
    kind: Tensor, source: Tensor, items: Sequence[str], fusion: Fusion, graph: KnowledgeGraph, encode: Encode
) -> Tensor:
    """Unit vectors of the items, float32 [X, d]; only entities that the graph did not embed are encoded."""
    stored = {ENTITY: graph.vectors, RELATION: graph.relation_vectors, TRIPLE: fusion.vectors}
    out = torch.empty(len(kind), fusion.vectors.shape[1])
    for number, table in stored.items():
        out[kind == number] = table[source[kind == number]]
    bare = (kind == ENTITY).nonzero()[:, 0]
    bare = bare[~graph.embedded[source[bare]]]
    names = list(dict.fromkeys(items[row] for row in bare.tolist()))
    row_of = {name: row for row, name in enumerate(names)}
    out[bare] = encode(names)[[row_of[items[row]] for row in bare.tolist()]]
    return out


def _long(numbers: list[int]) -> Tensor:
    return torch.tensor(numbers, dtype=torch.long)
