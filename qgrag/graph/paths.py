"""Paths of a batch of queries, and the merging of paths that others contain."""

from dataclasses import dataclass

import torch
from torch import Tensor

from qgrag.graph.ragged import Ragged, counts_to_ptr, ragged_arange


@dataclass(frozen=True, eq=False)
class Paths:
    """``P`` paths, ordered by query, then pair of seeds, then the tie rule of ``shortest_paths``.

    Attributes:
        query: int64 ``[P]``, the query that each path belongs to; does not decrease.
        source: int64 ``[P]``, the node that the path starts at.
        target: int64 ``[P]``, the node that it ends at.
        nodes: ``P`` rows, the nodes of each path from source to target (its length + 1).
        edges: ``P`` rows, the edge id of each step (its length).
        direction: int8, one for each of ``edges.values``: +1 if the step runs from the edge's own source to
            its target, -1 if against it.
        num_queries: number of queries ``B`` of the batch, those without paths included.
    """

    query: Tensor
    source: Tensor
    target: Tensor
    nodes: Ragged
    edges: Ragged
    direction: Tensor
    num_queries: int

    @property
    def num_paths(self) -> int:
        """Number of paths ``P``."""
        return self.query.numel()

    def select(self, keep: Tensor) -> "Paths":
        """The paths where ``keep`` (bool ``[P]``) is true."""
        node_keep, edge_keep = keep[self.nodes.batch()], keep[self.edges.batch()]
        return Paths(
            self.query[keep],
            self.source[keep],
            self.target[keep],
            Ragged(self.nodes.values[node_keep], counts_to_ptr(self.nodes.counts()[keep])),
            Ragged(self.edges.values[edge_keep], counts_to_ptr(self.edges.counts()[keep])),
            self.direction[edge_keep],
            self.num_queries,
        )


def drop_contained(paths: Paths) -> Paths:
    """Leaves out each path whose steps all stand, in a row, within a longer path of the same query.

    DualGraphRAG's merging of overlapping paths. Read from either end, since a pair has no order. Of paths with
    the same steps the first stays. All windows of all paths are compared at once: O(P L^2 log(P L)) time for
    paths of L steps.
    """
    length = paths.edges.counts()
    longest = int(length.max()) if paths.num_paths else 0
    steps = torch.full((paths.num_paths, longest), -1, dtype=torch.int64, device=length.device)
    row, place = ragged_arange(length)
    steps[row, place] = paths.edges.values
    windows, owner = [_one_way(steps, length)], [torch.arange(paths.num_paths, device=length.device)]
    for size in range(1, longest):
        for start in range(longest - size + 1):
            long_enough = ((length > size) & (length >= start + size)).nonzero().squeeze(1)
            window = torch.full((long_enough.numel(), longest), -1, dtype=torch.int64, device=length.device)
            window[:, :size] = steps[long_enough, start : start + size]
            windows.append(_one_way(window, torch.full_like(long_enough, size)))
            owner.append(long_enough)
    rows = torch.cat([paths.query[torch.cat(owner), None], torch.cat(windows)], dim=1)
    _, group = torch.unique(rows, dim=0, return_inverse=True)
    whole, part = group[: paths.num_paths], group[paths.num_paths :]
    first = torch.full_like(group, paths.num_paths)
    first.scatter_reduce_(0, whole, torch.arange(paths.num_paths, device=length.device), "amin")
    first[part] = -1
    return paths.select(first[whole] == torch.arange(paths.num_paths, device=length.device))


def _one_way(steps: Tensor, length: Tensor) -> Tensor:
    """Turns each row of steps (padded with -1) to the smaller of its two readings."""
    place = torch.arange(steps.size(1), device=steps.device)
    mirrored = (length[:, None] - 1 - place).clamp_(min=0)
    back = torch.where(place < length[:, None], steps.gather(1, mirrored), -1)
    differs = steps != back
    at = differs.to(torch.int8).argmax(1, keepdim=True) if steps.size(1) else steps
    smaller = steps.gather(1, at) <= back.gather(1, at)
    return torch.where(smaller, steps, back)
