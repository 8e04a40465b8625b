"""Graph kernels over PyG tensors: each takes a whole batch of queries, on CPU and CUDA alike."""

from typing import TYPE_CHECKING

from qgrag.lazy import lazy_names

if TYPE_CHECKING:
    from qgrag.graph.csr import CSR, to_csr
    from qgrag.graph.expansion import Expansion, expand
    from qgrag.graph.knn import KNNGraph, append_knn, knn_graph, knn_recall, remove_knn
    from qgrag.graph.path_search import shortest_paths
    from qgrag.graph.paths import Paths, drop_contained
    from qgrag.graph.ppr import TopNodes, personalized_pagerank, personalized_pagerank_topk
    from qgrag.graph.ppr_local import LocalPageRank, local_pagerank
    from qgrag.graph.ragged import Ragged
    from qgrag.graph.random_walk import Transition, Walk, transition, walk
    from qgrag.graph.subgraph import induced_subgraph

__all__ = [
    "CSR",
    "Expansion",
    "KNNGraph",
    "LocalPageRank",
    "Paths",
    "Ragged",
    "TopNodes",
    "Transition",
    "Walk",
    "append_knn",
    "drop_contained",
    "expand",
    "induced_subgraph",
    "knn_graph",
    "knn_recall",
    "local_pagerank",
    "personalized_pagerank",
    "personalized_pagerank_topk",
    "remove_knn",
    "shortest_paths",
    "to_csr",
    "transition",
    "walk",
]

__getattr__ = lazy_names(
    __name__,
    {
        "csr": ["CSR", "to_csr"],
        "expansion": ["Expansion", "expand"],
        "knn": ["KNNGraph", "append_knn", "knn_graph", "knn_recall", "remove_knn"],
        "path_search": ["shortest_paths"],
        "paths": ["Paths", "drop_contained"],
        "ppr": ["TopNodes", "personalized_pagerank", "personalized_pagerank_topk"],
        "ppr_local": ["LocalPageRank", "local_pagerank"],
        "ragged": ["Ragged"],
        "random_walk": ["Transition", "Walk", "transition", "walk"],
        "subgraph": ["induced_subgraph"],
    },
)
