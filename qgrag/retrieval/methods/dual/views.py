"""The two views of DualGraphRAG: one-hop triples and shortest paths."""

from dataclasses import dataclass

from torch import Tensor

from qgrag.graph import Paths, Ragged
from qgrag.retrieval.steps.linked_queries import LinkedQueries
from qgrag.retrieval.steps.one_hop import OneHop

EXPLICIT, IMPLICIT, NAMESAKE = range(3)


@dataclass(frozen=True)
class Views:
    """What DualGraphRAG retrieves for a batch of B queries.

    Args:
        linked: the explicit nodes.
        nodes: explicit, then implicit nodes, then titles that a plain name among them may mean.
        weights: float32, one per entry of `nodes.values`.
        kinds: int8, likewise: `EXPLICIT`, `IMPLICIT` or `NAMESAKE`.
        triples: the one-hop view, each triple once per node.
        paths: the shortest-path view.
    """

    linked: LinkedQueries
    nodes: Ragged
    weights: Tensor
    kinds: Tensor
    triples: OneHop
    paths: Paths
