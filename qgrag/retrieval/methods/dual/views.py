"""The two views of DualGraphRAG: one-hop triples and shortest paths."""

from dataclasses import dataclass

from torch import Tensor

from qgrag.graph import Paths, Ragged
from qgrag.retrieval.graph_steps import LinkedQueries, OneHop


@dataclass(frozen=True)
class Views:
    """What DualGraphRAG retrieves for a batch of B queries.

    Args:
        linked: the explicit nodes.
        nodes: explicit, then implicit nodes, then titles that a plain name among them may mean.
        weights: float32, one for each of `nodes.values`.
        kinds: int8, one for each: 0 explicit, 1 implicit, 2 namesake.
        triples: the one-hop view, each triple once a node.
        paths: the shortest-path view.
    """

    linked: LinkedQueries
    nodes: Ragged
    weights: Tensor
    kinds: Tensor
    triples: OneHop
    paths: Paths
