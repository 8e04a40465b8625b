"""Expansion and induced edges against networkx."""

import networkx as nx
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from qgrag.graph import CSR, Ragged, expand, induced_subgraph
from tests.graph.conftest import PROPERTY, csr_of, graphs_and_seeds, networkx_of, ragged


def levels(graph: nx.Graph, seeds: list[int], hops: int) -> dict[int, int]:
    """Hop of every node within reach, by one single-source search a seed."""
    found: dict[int, int] = {}
    for seed in seeds:
        for node, hop in nx.single_source_shortest_path_length(graph, seed, cutoff=hops).items():
            found[node] = min(hop, found.get(node, hop))
    return found


def table_of(csr: CSR) -> torch.Tensor:
    """The CSR's neighbours as a table padded with -1."""
    table = torch.full((csr.num_nodes, int(csr.degree().max())), -1, device=csr.device)
    place = torch.arange(csr.num_slots, device=csr.device) - csr.rowptr[csr.row()]
    table[csr.row(), place] = csr.col
    return table


@PROPERTY
@given(graphs_and_seeds(), st.integers(0, 4), st.booleans(), st.booleans(), st.sampled_from([1, 512]))
def test_hops_are_those_of_networkx(case: tuple, hops: int, undirected: bool, as_table: bool, memory_mb: int) -> None:
    num_nodes, edges, seeds = case
    csr = csr_of(num_nodes, edges, torch.device("cpu"), undirected=undirected)
    graph = networkx_of(num_nodes, edges, undirected=undirected)
    neighbours = table_of(csr) if as_table else csr
    found = expand(neighbours, ragged(seeds, csr.device), hops, memory_mb=memory_mb)
    hop = Ragged(found.hop, found.nodes.ptr)
    for row, expected_seeds in enumerate(seeds):
        nodes = found.nodes.row(row).tolist()
        assert dict(zip(nodes, hop.row(row).tolist(), strict=True)) == levels(graph, expected_seeds, hops)
        assert hop.row(row).tolist() == sorted(hop.row(row).tolist())


@PROPERTY
@given(graphs_and_seeds(), st.integers(1, 6), st.integers(0, 2**31))
def test_cap_keeps_the_best_by_hop_then_score(case: tuple, max_nodes: int, seed: int) -> None:
    num_nodes, edges, seeds = case
    csr = csr_of(num_nodes, edges, torch.device("cpu"))
    scores = torch.randint(0, 3, (len(seeds), num_nodes), generator=torch.Generator().manual_seed(seed)).float()
    batch = ragged(seeds, csr.device)
    whole = expand(csr, batch, 3)
    capped = expand(csr, batch, 3, scores=scores, max_nodes=max_nodes)
    assert torch.equal(expand(table_of(csr), batch, 3).nodes.values, whole.nodes.values)
    by_table = expand(table_of(csr), batch, 3, scores=scores, max_nodes=max_nodes)
    assert torch.equal(by_table.nodes.values, capped.nodes.values)
    assert torch.equal(by_table.hop, capped.hop)
    by_call = expand(csr, batch, 3, scores=lambda query, node: scores[query, node], max_nodes=max_nodes)
    assert torch.equal(capped.nodes.values, by_call.nodes.values)
    for row in range(len(seeds)):
        hops = dict(
            zip(whole.nodes.row(row).tolist(), Ragged(whole.hop, whole.nodes.ptr).row(row).tolist(), strict=True)
        )
        best = sorted(hops, key=lambda node, row=row, hops=hops: (hops[node], -float(scores[row, node]), node))
        assert capped.nodes.row(row).tolist() == best[:max_nodes]


def test_table_and_csr_agree(device: torch.device) -> None:
    generator = torch.Generator().manual_seed(3)
    table = torch.randint(-1, 200, (200, 3), generator=generator)
    edges = [(row, col, 1.0) for row, cols in enumerate(table.tolist()) for col in cols if col >= 0]
    csr = csr_of(200, edges, device, undirected=False)
    seeds = ragged([[0, 5, 5], [], [199]], device)
    by_table, by_csr = expand(table.to(device), seeds, 2), expand(csr, seeds, 2)
    assert by_table.nodes.to_lists() == by_csr.nodes.to_lists()
    assert by_table.hop.tolist() == by_csr.hop.tolist()


def test_a_hub_passes_in_pieces(device: torch.device) -> None:
    spokes = 100_000
    csr = csr_of(spokes + 1, [(0, other, 1.0) for other in range(1, spokes + 1)], device)
    found = expand(csr, ragged([[1], [2]], device), 2, memory_mb=1)
    assert found.nodes.counts().tolist() == [spokes + 1, spokes + 1]
    few = expand(csr, ragged([[1], [2]], device), 2, memory_mb=1, max_nodes=5)
    assert few.nodes.to_lists() == [[1, 0, 2, 3, 4], [2, 0, 1, 3, 4]]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"hops": -1}, "hops must be at least 0; got -1"),
        ({"hops": 1, "max_nodes": 0}, "max_nodes must be at least 1; got 0"),
        ({"hops": 1, "scores": torch.zeros(7)}, r"scores must be \[3\] or \[1, 3\]"),
        ({"hops": 1, "scores": torch.tensor([0.0, torch.nan, 0.0])}, "scores holds NaN for node 1 of query 0"),
        ({"hops": 1.5}, "hops must be a whole number; got 1.5"),
        ({"hops": 1, "memory_mb": 0}, "memory_mb must be at least 1; got 0"),
    ],
)
def test_bad_arguments_are_named(arguments: dict, message: str) -> None:
    csr = csr_of(3, [(0, 1, 1.0)], torch.device("cpu"))
    with pytest.raises(ValueError, match=message):
        expand(csr, Ragged.from_lists([[0]]), **arguments)


def test_a_table_of_floats_is_refused() -> None:
    with pytest.raises(
        ValueError, match=r"neighbours must be an integer \[N, k\]; got shape \(1, 1\), dtype torch.float32"
    ):
        expand(torch.tensor([[0.7]]), Ragged.from_lists([[0]]), 1)


def test_ids_out_of_range_are_named(device: torch.device) -> None:
    csr = csr_of(3, [(0, 1, 1.0)], device)
    with pytest.raises(ValueError, match="seeds holds 3 at place 1"):
        expand(csr, ragged([[0], [3]], device), 1)
    with pytest.raises(ValueError, match="neighbours holds 9 for node 2; ids must be less than 3"):
        expand(torch.tensor([[1, -1], [2, 0], [0, 9]], device=device), ragged([[0]], device), 3)
    with pytest.raises(ValueError, match="nodes holds -1"):
        induced_subgraph(csr, ragged([[-1]], device))


def test_empty_graph_and_no_seeds(device: torch.device) -> None:
    empty = csr_of(0, [], device)
    assert expand(empty, ragged([[], []], device), 2).nodes.to_lists() == [[], []]
    table = torch.zeros(0, 3, dtype=torch.int64, device=device)
    assert expand(table, ragged([[], []], device), 2).nodes.to_lists() == [[], []]
    assert expand(table[:, :0], ragged([], device), 2).nodes.to_lists() == []
    assert expand(torch.zeros(4, 0, dtype=torch.int64, device=device), ragged([[3]], device), 2).hop.tolist() == [0]
    assert induced_subgraph(empty, ragged([[]], device)).to_lists() == [[]]
    lone = csr_of(2, [], device)
    assert expand(lone, ragged([[1], []], device), 2).nodes.to_lists() == [[1], []]


@PROPERTY
@given(graphs_and_seeds(max_seeds=8), st.booleans(), st.sampled_from([1, 512]))
def test_induced_edges_are_those_of_networkx(case: tuple, undirected: bool, memory_mb: int) -> None:
    num_nodes, edges, sets = case
    csr = csr_of(num_nodes, edges, torch.device("cpu"), undirected=undirected)
    graph = networkx_of(num_nodes, edges, undirected=False)
    found = induced_subgraph(csr, ragged(sets, csr.device), memory_mb=memory_mb)
    expected = [sorted(edge_id for *_, edge_id in graph.subgraph(nodes).edges(data="id")) for nodes in sets]
    assert found.to_lists() == expected
