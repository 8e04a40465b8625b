"""Synthetic graphs and vectors: the same for every run and every peer."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from qgrag.graph import CSR, Ragged, to_csr


@dataclass
class Graph:
    """A weighted graph without parallel edges, as edges and as an undirected CSR."""

    name: str
    edge_index: Tensor
    weight: Tensor
    csr: CSR

    @property
    def num_nodes(self) -> int:
        """Number of nodes."""
        return self.csr.num_nodes

    @property
    def num_edges(self) -> int:
        """Number of edges."""
        return self.edge_index.size(1)

    def pairs(self) -> np.ndarray:
        """The edges as igraph reads them: int64 ``[E, 2]``, rows whole in memory."""
        return np.ascontiguousarray(self.edge_index.t().cpu().numpy())


def preferential(num_nodes: int, degree: int, device: torch.device, seed: int = 0) -> Graph:
    """Preferential attachment, ``degree`` edges a new node, ids shuffled, weights from 0.5 to 2.

    A new node links to the ends of random earlier edges, hence to nodes in proportion to their degree (Barabasi and
    Albert 1999), drawn for blocks of nodes a sixteenth larger each time; repeats are dropped.
    """
    draw = np.random.default_rng(seed)
    source = np.repeat(np.arange(1, num_nodes), degree)
    ends = np.stack([source, np.zeros_like(source)], 1)
    block = 1
    while block < num_nodes:
        stop = min(num_nodes, block + 1 + block // 16)
        first, last = (block - 1) * degree, (stop - 1) * degree
        if first:
            ends[first:last, 1] = ends[:first].reshape(-1)[draw.integers(0, 2 * first, last - first)]
        block = stop
    source, target = ends.T
    pairs = np.unique(np.stack([source, target], 1), axis=0)
    pairs = draw.permutation(num_nodes)[pairs]
    edge_index = torch.from_numpy(pairs.T.copy()).to(device)
    weight = torch.from_numpy(draw.uniform(0.5, 2, len(pairs)).astype(np.float32)).to(device)
    csr = to_csr(edge_index, weight, num_nodes=num_nodes, undirected=True)
    return Graph(f"preferential-{num_nodes}", edge_index, weight, csr)


def neighbour_table(num_nodes: int, k: int, device: torch.device, seed: int = 0) -> Tensor:
    """A random directed table of ``k`` neighbours a node, int64 ``[N, k]``."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(0, num_nodes, (num_nodes, k), generator=generator).to(device)


def random_seeds(num_nodes: int, queries: int, each: int, device: torch.device, seed: int = 1) -> Ragged:
    """``queries`` rows of ``each`` distinct nodes."""
    draw = np.random.default_rng(seed)
    lists = [draw.choice(num_nodes, each, replace=False).tolist() for _ in range(queries)]
    return Ragged.from_lists(lists, device)


def clustered_vectors(num: int, dim: int, device: torch.device, seed: int = 0) -> Tensor:
    """Unit vectors around one random centre for every 50 of them, float32 ``[num, dim]``.

    The noise is as long as the centre, so that two vectors of a cluster have a cosine of about 0.5.
    """
    generator = torch.Generator().manual_seed(seed)
    centres = torch.randn(max(1, num // 50), dim, generator=generator)
    own = torch.randint(0, len(centres), (num,), generator=generator)
    x = torch.randn(num, dim, generator=generator).add_(centres[own])
    return torch.nn.functional.normalize(x).to(device)
