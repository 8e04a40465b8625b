"""The triples around nodes of the knowledge graph, those most similar to the query."""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from qgrag.graph import CSR, Ragged
from qgrag.graph.ragged import pieces
from qgrag.graph.segments import top_per_group

BYTES_PER_SLOT = 64


class OneHop(NamedTuple):
    """Triples around nodes, by node, the most similar first; all tensors [M].

    Args:
        place: int64, position of the node in the batch of nodes.
        query: int64.
        node: int64.
        other: int64, the other end of the triple.
        triple: int64.
        similarity: float32, of the triple's relation to the query.
    """

    place: Tensor
    query: Tensor
    node: Tensor
    other: Tensor
    triple: Tensor
    similarity: Tensor


def one_hop(
    csr: CSR,
    nodes: Ragged,
    similarity: Callable[[Tensor, Tensor], Tensor],
    max_triples: int,
    *,
    memory_mb: int = 256,
) -> OneHop:
    """The triples that each node is an end of, at most `max_triples` per node, those most similar to the query.

    Nodes are read in pieces of about `memory_mb`, so that a hub of a hundred thousand edges costs its own
    slots once and leaves no more triples behind than any other node. O(T log T) time for T slots.

    Args:
        csr: of the triples, undirected; a self-loop counts once.
        nodes: B rows.
        similarity: (query [S], triple [S]) -> float32 [S].
        max_triples: triples kept per node.
        memory_mb: bound of what is gathered at once; a single node may exceed it.
    """
    batch = nodes.batch()
    parts = []
    for start, stop in pieces(csr.degree()[nodes.values], max(1, memory_mb * 2**20 // BYTES_PER_SLOT)):
        place, slot = csr.slots(nodes.values[start:stop])
        query, triple = batch[start:stop][place], csr.edge_id[slot]
        score = similarity(query, triple)
        kept = top_per_group(place, score, max_triples)
        found = (place[kept] + start, query[kept], nodes.values[start:stop][place[kept]])
        parts.append(OneHop(*found, csr.col[slot[kept]], triple[kept], score[kept]))
    return OneHop(*(torch.cat(column) for column in zip(*parts, strict=True)))
