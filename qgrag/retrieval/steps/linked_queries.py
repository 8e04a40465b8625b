"""The entities of the knowledge graph that a batch of queries means."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from qgrag.graph import Ragged
from qgrag.retrieval.linking.link import Encode, Link
from qgrag.retrieval.linking.linker import EntityLinker
from qgrag.retrieval.steps.protocols import QueryEntities


@dataclass(frozen=True)
class LinkedQueries:
    """The entities of a batch of B queries.

    Args:
        links: per query, in the order of its text.
        nodes: their rows in the knowledge graph.
        weights: float32, one per entry of `nodes.values`: the links' scores.
    """

    links: list[list[Link]]
    nodes: Ragged
    weights: Tensor

    @property
    def linked(self) -> Tensor:
        """Whether each query has an entity, bool [B]."""
        return self.nodes.counts() > 0


def link_entities(
    queries: Sequence[str], linker: EntityLinker, encode: Encode, step: QueryEntities | None
) -> LinkedQueries:
    """The entities that queries mean.

    Args:
        queries: B texts.
        linker: to the graph.
        encode: names -> unit vectors, as the graph's names were encoded.
        step: takes names from the queries. Without it, and of queries that it could not read, every name is taken
            that the graph knows.
    """
    found = [None] * len(queries) if step is None else step(queries)
    links = linker.link_names([(*row.explicit, *row.enhanced) if row else () for row in found], encode)
    unread = [i for i, row in enumerate(found) if row is None]
    for i, row in zip(unread, linker.link_queries([queries[i] for i in unread], encode)):
        links[i] = row
    rows = Ragged.from_lists([[link.entity for link in row] for row in links])
    weights = torch.tensor([link.score for row in links for link in row], dtype=torch.float32)
    return LinkedQueries(links, rows, weights)
