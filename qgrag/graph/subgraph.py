"""Induced edges of ragged node sets."""

import torch

from qgrag.graph.checks import check_positive, check_seeds
from qgrag.graph.csr import CSR
from qgrag.graph.ragged import Ragged, pieces
from qgrag.graph.segments import contains, row_keys, sorted_distinct


def induced_subgraph(csr: CSR, nodes: Ragged, *, memory_mb: int = 512) -> Ragged:
    """The edges whose two ends lie in a query's node set, for each query.

    What ``torch_geometric.utils.subgraph`` does for one set with masks of the whole graph, for a ragged batch at
    the cost of the sets' own slots. With T slots of all nodes and K nodes: O(T log K) time; memory is the answer
    and at most ``memory_mb`` more.

    Args:
        csr: the graph; directed or undirected gives the same edges.
        nodes: ``B`` rows of node ids; repeats count once.
        memory_mb: bound of the slots gathered at once, in MiB.

    Returns:
        ``B`` rows of edge ids (columns of the ``edge_index`` behind ``csr``), distinct and ascending.

    Raises:
        ValueError: for a node out of range.

    Example:
        >>> from qgrag.graph.csr import to_csr
        >>> csr = to_csr(torch.tensor([[0, 1, 2], [1, 2, 0]]), num_nodes=3)
        >>> induced_subgraph(csr, Ragged.from_lists([[0, 1], [2]])).to_lists()
        [[0], []]
    """
    check_seeds("nodes", nodes, csr.num_nodes, csr.device)
    check_positive("memory_mb", memory_mb)
    members = sorted_distinct(row_keys(nodes.batch(), nodes.values, csr.num_nodes))
    if members.numel() == 0:
        return Ragged(members, torch.zeros_like(nodes.ptr))
    batch, node = members // csr.num_nodes, members % csr.num_nodes
    num_ids = max(1, csr.num_slots)
    found = []
    for start, stop in pieces(csr.rowptr[node + 1] - csr.rowptr[node], max(1, memory_mb * 2**20 // 64)):
        owner, slot = csr.slots(node[start:stop])
        query = batch[start:stop][owner]
        inside = contains(members, row_keys(query, csr.col[slot], csr.num_nodes))
        found.append(row_keys(query[inside], csr.edge_id[slot[inside]], num_ids))
    keys = sorted_distinct(torch.cat(found))
    return Ragged.from_batch(keys % num_ids, keys // num_ids, nodes.num_rows)
