"""The random walk over a graph's slots, laid out once for the PageRank kernels."""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import embedding_bag

from qgrag.graph.csr import CSR
from qgrag.graph.ragged import counts_to_ptr, ragged_arange

LONGEST_BAG = 64
"""Entries that are summed one by one, in the dtype of the scores."""


@dataclass(frozen=True, eq=False)
class Transition:
    """W D^-1 by rows of the target: entry (v, u) is the chance to step from u to v.

    Build it once a graph and pass it to ``personalized_pagerank`` in place of the CSR: it saves a sort a call.

    Attributes:
        bagptr: int32 ``[N + H + 1]`` (int64 from 2^31 slots on). The first N bags hold at most ``LONGEST_BAG``
            entries of each row, H more bags what the hubs, whose rows are longer, have left.
        hubs: int64 ``[U]``, the nodes whose rows are longer.
        hub_of: int64 ``[H]``, the place in ``hubs`` of the node that each of those bags belongs to.
        col: int32 ``[S]``, the node u that each entry comes from, bag by bag.
        value: floating ``[S]``, w(u, v) divided by the sum of u's out-weights.
        dangling: int64 ``[D]``, nodes whose out-weights sum to 0.
        reversible: whether the graph is undirected, so that all eigenvalues are real.
    """

    bagptr: Tensor
    hubs: Tensor
    hub_of: Tensor
    col: Tensor
    value: Tensor
    dangling: Tensor
    reversible: bool = False

    @property
    def num_nodes(self) -> int:
        """Number of nodes ``N``."""
        return self.bagptr.numel() - 1 - self.hub_of.numel()

    @property
    def device(self) -> torch.device:
        """Where the tensors lie."""
        return self.col.device

    def step(self, x: Tensor) -> Tensor:
        """W D^-1 x for ``x`` ``[N, C]`` in the dtype of ``value``; O(S C) time.

        ``torch.nn.functional.embedding_bag`` with weighted sums: on CPU it moves rows of 16 to 32 floats about
        three times as fast as a ``torch.sparse`` product; on CUDA it is one fused kernel as well. It sums a bag
        entry by entry, and a hub's thousands of entries would lose digits of float32 that way: the sums of a hub's
        bags are added in float64.
        """
        y = embedding_bag(self.col, x, self.bagptr, mode="sum", per_sample_weights=self.value, include_last_offset=True)
        y, more = y[: self.num_nodes], y[self.num_nodes :]
        if self.hubs.numel():
            y[self.hubs] = y[self.hubs].double().index_add_(0, self.hub_of, more.double()).to(y.dtype)
        return y


@dataclass(frozen=True, eq=False)
class Walk:
    """The walk by rows of the source, as pushes read it: residuals are kept a slot of their node.

    Build it once a graph and pass it to ``local_pagerank`` in place of the CSR: it saves O(S) work a call.

    Attributes:
        rowptr: int64 ``[N + 1]``.
        col: int32 ``[S]``, the node v that each slot leads to (int64 from 2^31 nodes on).
        flow: floating ``[S]``, the chance to step from u to v times degree(u) / degree(v).
        degree: floating ``[N]``, slots of each node, at least 1.
        dangling: bool ``[N]``, whether the node's out-weights sum to 0.
        stationary: floating ``[N]``, where an endless walk on an undirected graph is found: a node's share of all
            weight; None for a directed graph.
    """

    rowptr: Tensor
    col: Tensor
    flow: Tensor
    degree: Tensor
    dangling: Tensor
    stationary: Tensor | None

    @property
    def num_nodes(self) -> int:
        """Number of nodes ``N``."""
        return self.rowptr.numel() - 1

    @property
    def device(self) -> torch.device:
        """Where the tensors lie."""
        return self.col.device


def transition(csr: CSR, *, dtype: torch.dtype = torch.float32) -> Transition:
    """Normalises the out-weights of each node to 1 and groups them by target. O(S log S) time."""
    chance, out, row = _chances(csr)
    order = torch.argsort(csr.col, stable=True)
    counts = torch.bincount(csr.col, minlength=csr.num_nodes)
    first = counts.clamp(max=LONGEST_BAG)
    hubs = (counts > LONGEST_BAG).nonzero().squeeze(1)
    hub_of, place = ragged_arange((counts[hubs] - 1).div(LONGEST_BAG, rounding_mode="floor"))
    more = (counts[hubs[hub_of]] - (place + 1) * LONGEST_BAG).clamp_(max=LONGEST_BAG)
    _, place = ragged_arange(counts)
    order = torch.cat([order[place < LONGEST_BAG], order[place >= LONGEST_BAG]])
    index = torch.int32 if csr.num_slots < 2**31 else torch.int64
    return Transition(
        bagptr=counts_to_ptr(torch.cat([first, more])).to(index),
        hubs=hubs,
        hub_of=hub_of,
        col=row[order].to(index),
        value=chance[order].to(dtype),
        dangling=(out == 0).nonzero().squeeze(1),
        reversible=csr.undirected,
    )


def walk(csr: CSR, *, dtype: torch.dtype = torch.float32) -> Walk:
    """Lays the chances out by source. O(S) time."""
    chance, out, row = _chances(csr)
    degree = csr.degree().clamp_min(1).to(torch.float64)
    return Walk(
        rowptr=csr.rowptr,
        col=csr.col.to(torch.int32 if csr.num_nodes < 2**31 else torch.int64),
        flow=(chance * degree[row] / degree[csr.col]).to(dtype),
        degree=degree.to(dtype),
        dangling=out == 0,
        stationary=(out / out.sum().clamp_min(torch.finfo(out.dtype).tiny)).to(dtype) if csr.undirected else None,
    )


def _chances(csr: CSR) -> tuple[Tensor, Tensor, Tensor]:
    """Chance of each slot (0 where all of a node's weights are 0), out-weight of each node, row of each slot."""
    row = csr.row()
    weight = torch.ones(csr.num_slots, dtype=torch.float64, device=csr.device)
    if csr.weight is not None:
        weight = csr.weight.to(torch.float64)
    out = torch.zeros(csr.num_nodes, dtype=torch.float64, device=csr.device).index_add_(0, row, weight)
    return weight / out[row].clamp_min(torch.finfo(torch.float64).tiny), out, row
