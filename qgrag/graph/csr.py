"""Compressed sparse rows: the graph as every kernel but kNN reads it."""

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from qgrag.graph.checks import check_index, check_positive, check_weights
from qgrag.graph.ragged import counts_to_ptr, ragged_slots


@dataclass(frozen=True, eq=False)
class CSR:
    """Edges grouped by their row node; within a row by column, then edge id.

    An undirected CSR lists each edge under both ends (a self-loop once), with the same ``edge_id``.

    Attributes:
        rowptr: int64 ``[N + 1]``, row ``u`` owns the slots ``rowptr[u]:rowptr[u + 1]``.
        col: int64 ``[S]``, the node that a slot leads to.
        weight: floating ``[S]``, or None where all edges weigh 1.
        edge_id: int64 ``[S]``, the column of ``edge_index`` that the slot came from.
        direction: int8 ``[S]``, +1 if the slot runs from the edge's source to its target, -1 if against it.
        undirected: whether each edge is listed under both ends.
    """

    rowptr: Tensor
    col: Tensor
    weight: Tensor | None
    edge_id: Tensor
    direction: Tensor
    undirected: bool = False

    @property
    def num_nodes(self) -> int:
        """Number of nodes ``N``."""
        return self.rowptr.numel() - 1

    @property
    def num_slots(self) -> int:
        """Number of slots ``S``: the edges, or about twice as many in an undirected CSR."""
        return self.col.numel()

    @property
    def device(self) -> torch.device:
        """Where the tensors lie."""
        return self.col.device

    def degree(self) -> Tensor:
        """Slots of each row, int64 ``[N]``."""
        return self.rowptr.diff()

    def row(self) -> Tensor:
        """Row node of each slot, int64 ``[S]``."""
        return torch.repeat_interleave(self.degree(), output_size=self.num_slots)

    def slots(self, nodes: Tensor) -> tuple[Tensor, Tensor]:
        """All slots of the given rows.

        Args:
            nodes: int64 ``[F]``, row nodes, repeats allowed.

        Returns:
            ``owner`` int64 ``[T]``, the place in ``nodes`` that each slot belongs to (does not decrease), and
            ``slot`` int64 ``[T]``.
        """
        return ragged_slots(self.rowptr, nodes)

    def to(self, device: torch.device | str) -> "CSR":
        """The same graph on another device."""
        weight = None if self.weight is None else self.weight.to(device)
        return replace(
            self,
            rowptr=self.rowptr.to(device),
            col=self.col.to(device),
            weight=weight,
            edge_id=self.edge_id.to(device),
            direction=self.direction.to(device),
        )


def to_csr(edge_index: Tensor, edge_weight: Tensor | None = None, *, num_nodes: int, undirected: bool = False) -> CSR:
    """Groups edges by source node (PyG's ``index_sort`` order, with edge ids and directions kept).

    Parallel edges stay apart. One sort: O(E log E) time, O(E) memory.

    Args:
        edge_index: int64 ``[2, E]``, sources and targets (PyG's COO).
        edge_weight: floating ``[E]``, finite and not negative.
        num_nodes: number of nodes ``N``.
        undirected: also list every edge, self-loops excepted, under its target.

    Raises:
        ValueError: for a shape that does not fit, a negative ``num_nodes``, an id outside ``[0, N)``, a negative, NaN
            or infinite weight.
    """
    if edge_index.dim() != 2 or edge_index.size(0) != 2:
        raise ValueError(f"edge_index must be [2, E]; got shape {tuple(edge_index.shape)}")
    check_positive("num_nodes", num_nodes, 0)
    check_index("edge_index", edge_index, num_nodes)
    num_edges = edge_index.size(1)
    if edge_weight is not None:
        if edge_weight.shape != (num_edges,) or not edge_weight.is_floating_point():
            raise ValueError(
                f"edge_weight must be a floating [{num_edges}], one for each edge; "
                f"got shape {tuple(edge_weight.shape)}, dtype {edge_weight.dtype}"
            )
        check_weights("edge_weight", edge_weight)
    row, col = edge_index.to(torch.int64)
    edge_id = torch.arange(num_edges, device=edge_index.device)
    direction = torch.ones(num_edges, dtype=torch.int8, device=edge_index.device)
    if undirected:
        row, col = torch.stack([row, col], 1).flatten(), torch.stack([col, row], 1).flatten()
        edge_id = edge_id.repeat_interleave(2)
        direction = torch.stack([direction, -direction], 1).flatten()
        keep = (row != col) | (direction > 0)
        row, col, edge_id, direction = row[keep], col[keep], edge_id[keep], direction[keep]
    order = torch.argsort(row * num_nodes + col, stable=True)
    edge_id = edge_id[order]
    return CSR(
        rowptr=counts_to_ptr(torch.bincount(row, minlength=num_nodes)),
        col=col[order],
        weight=None if edge_weight is None else edge_weight[edge_id],
        edge_id=edge_id,
        direction=direction[order],
        undirected=undirected,
    )
