"""Ragged batches and compressed rows."""

import pytest
import torch
from hypothesis import given

from qgrag.graph import Ragged, to_csr
from qgrag.graph.ragged import pieces
from tests.graph.conftest import PROPERTY, csr_of, graphs


def test_ragged_keeps_its_rows(device: torch.device) -> None:
    lists = [[4, 2], [], [7], []]
    batch = Ragged.from_lists(lists, device)
    assert batch.to_lists() == lists
    assert batch.batch().tolist() == [0, 0, 2]
    assert batch.rows(1, 3).to_lists() == [[], [7]]
    assert batch.row(0).tolist() == [4, 2]
    assert Ragged.from_batch(batch.values, batch.batch(), 4).to_lists() == lists


def test_ragged_refuses_shapes_that_do_not_fit() -> None:
    with pytest.raises(ValueError, match="ptr"):
        Ragged(torch.zeros(2, 2), torch.zeros(1))
    for ptr in ([0, 5], [1, 2], [0, 2, 1, 2]):
        with pytest.raises(ValueError, match="ptr must rise from 0 to 2, the number of values"):
            Ragged(torch.arange(2), torch.tensor(ptr))


def test_a_negative_number_of_nodes_is_refused() -> None:
    with pytest.raises(ValueError, match="num_nodes must be at least 0; got -1"):
        to_csr(torch.zeros(2, 0, dtype=torch.int64), num_nodes=-1)


@PROPERTY
@given(graphs())
def test_csr_lists_every_edge_under_its_ends(graph: tuple) -> None:
    num_nodes, edges = graph
    csr = csr_of(num_nodes, edges, torch.device("cpu"))
    listed = sorted(
        zip(csr.row().tolist(), csr.col.tolist(), csr.edge_id.tolist(), csr.direction.tolist(), strict=True)
    )
    expected = [(u, v, i, 1) for i, (u, v, _) in enumerate(edges)]
    expected += [(v, u, i, -1) for i, (u, v, _) in enumerate(edges) if u != v]
    assert listed == sorted(expected)
    assert listed == list(
        zip(csr.row().tolist(), csr.col.tolist(), csr.edge_id.tolist(), csr.direction.tolist(), strict=True)
    )


@pytest.mark.parametrize(
    ("edges", "weights", "message"),
    [
        ([[0, 1], [1, 5]], None, r"edge_index holds 5 at place 3"),
        ([[0, -1], [1, 2]], None, r"edge_index holds -1 at place 1"),
        ([[0, 1], [1, 2]], [1.0, -2.0], r"edge_weight holds -2.0 at place 1"),
        ([[0, 1], [1, 2]], [float("nan"), 1.0], r"edge_weight holds nan at place 0"),
        ([[0, 1], [1, 2]], [float("inf"), 1.0], r"edge_weight holds inf at place 0"),
        ([[0, 1], [1, 2]], [1.0], r"edge_weight must be a floating \[2\]"),
    ],
)
def test_bad_edges_are_named(edges: list, weights: list | None, message: str, device: torch.device) -> None:
    weight = None if weights is None else torch.tensor(weights, device=device)
    with pytest.raises(ValueError, match=message):
        to_csr(torch.tensor(edges, device=device), weight, num_nodes=3)


def test_edge_index_of_another_shape_is_refused() -> None:
    with pytest.raises(ValueError, match=r"edge_index must be \[2, E\]"):
        to_csr(torch.zeros(3, 2, dtype=torch.int64), num_nodes=3)


def test_pieces_cover_everything_once_within_budget() -> None:
    counts = torch.tensor([3, 0, 5, 100, 1, 1, 1, 0])
    cut = pieces(counts, 6)
    assert [start for start, _ in cut] == [0, *(stop for _, stop in cut[:-1])]
    assert cut[-1][1] == counts.numel()
    assert all(counts[start:stop].sum() <= 12 or stop - start == 1 or 100 in counts[start:stop] for start, stop in cut)
