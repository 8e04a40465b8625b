"""Personalised PageRank, global and local, against networkx and igraph."""

import logging
import time
from threading import Thread

import igraph
import networkx as nx
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from qgrag.graph import (
    CSR,
    LocalPageRank,
    Ragged,
    local_pagerank,
    personalized_pagerank,
    personalized_pagerank_topk,
    transition,
    walk,
)
from tests.graph.conftest import PROPERTY, EdgeList, csr_of, graphs_and_seeds, networkx_of, ragged


def reference(graph: nx.Graph, seeds: list[int], damping: float) -> list[float]:
    """networkx's scores; 0 everywhere without seeds."""
    if not seeds:
        return [0.0] * len(graph)
    restart = {node: seeds.count(node) for node in seeds}
    ranks = nx.pagerank(graph, alpha=damping, personalization=restart, dangling=restart, tol=1e-12, max_iter=2000)
    return [ranks[node] for node in range(len(graph))]


def dense(local: LocalPageRank, num_nodes: int) -> torch.Tensor:
    """Local scores as ``[B, N]``."""
    out = local.scores.new_zeros(local.nodes.num_rows, num_nodes)
    out[local.nodes.batch(), local.nodes.values] = local.scores
    return out


@PROPERTY
@given(graphs_and_seeds(), st.booleans(), st.booleans(), st.sampled_from([0.0, 0.5, 0.85]))
def test_scores_are_those_of_networkx(case: tuple, weighted: bool, undirected: bool, damping: float) -> None:
    num_nodes, edges, seeds = case
    csr = csr_of(num_nodes, edges, torch.device("cpu"), weighted=weighted, undirected=undirected)
    graph = networkx_of(num_nodes, edges, weighted=weighted, undirected=undirected)
    expected = torch.tensor([reference(graph, row, damping) for row in seeds], dtype=torch.float64)
    batch = ragged(seeds, csr.device)
    exact = personalized_pagerank(csr, batch, damping=damping, tol=1e-12, dtype=torch.float64)
    torch.testing.assert_close(exact, expected, atol=1e-9, rtol=0)
    single = personalized_pagerank(csr, batch, damping=damping, tol=1e-6, block=2)
    torch.testing.assert_close(single.double(), expected, atol=1e-5, rtol=0)


def test_bipartite_graphs_need_few_iterations(device: torch.device, caplog: pytest.LogCaptureFixture) -> None:
    generator = torch.Generator().manual_seed(5)
    left = torch.randint(0, 400, (1500,), generator=generator)
    right = torch.randint(400, 900, (1500,), generator=generator)
    edges = list(zip(left.tolist(), right.tolist(), [1.0] * 1500, strict=True))
    csr = csr_of(900, edges, device)
    seeds = ragged([[3], [3, 401, 401], [899]], device)
    expected = [reference(networkx_of(900, edges), row, 0.85) for row in seeds.to_lists()]
    with caplog.at_level(logging.WARNING):
        scores = personalized_pagerank(csr, seeds, max_iter=45)
    assert not caplog.records
    torch.testing.assert_close(scores.cpu(), torch.tensor(expected), atol=1e-5, rtol=0)


@pytest.mark.parametrize("leaves", [50, 1000, 20_000])
def test_a_star_converges_and_its_hub_keeps_its_precision(
    leaves: int, device: torch.device, caplog: pytest.LogCaptureFixture
) -> None:
    star = csr_of(leaves + 1, [(0, leaf, 1.0) for leaf in range(1, leaves + 1)], device)
    seeds = ragged([[0], [1], [0, 1], [1, 2, 3]], device)
    with caplog.at_level(logging.WARNING):
        single = personalized_pagerank(star, seeds)
        local = local_pagerank(star, seeds)
    assert not caplog.records
    double = personalized_pagerank(star, seeds, tol=1e-12, dtype=torch.float64)
    assert (single.double() - double).abs().sum(1).max() < 2e-5
    assert ((dense(local, leaves + 1).double() - double).abs().sum(1) <= local.bound + 1e-5).all()


@PROPERTY
@given(
    graphs_and_seeds(),
    st.booleans(),
    st.booleans(),
    st.sampled_from([1e-1, 1e-2, 1e-5]),
    st.booleans(),
    st.integers(0, 4),
)
def test_local_scores_keep_their_bound(
    case: tuple, weighted: bool, undirected: bool, epsilon: float, cut_short: bool, refine: int
) -> None:
    num_nodes, edges, seeds = case
    csr = csr_of(num_nodes, edges, torch.device("cpu"), weighted=weighted, undirected=undirected)
    batch = ragged(seeds, csr.device)
    exact = personalized_pagerank(csr, batch, tol=1e-13, dtype=torch.float64)
    max_iter = 2 if cut_short else 1000
    local = local_pagerank(csr, batch, epsilon=epsilon, max_iter=max_iter, refine=refine, dtype=torch.float64)
    away = (exact - dense(local, num_nodes)).abs().sum(1)
    assert (away <= local.bound + 1e-11).all()
    if not undirected:
        assert (dense(local, num_nodes) <= exact + 1e-12).all()


def test_refining_brings_the_best_nodes_nearer(hub_csr: CSR, device: torch.device) -> None:
    batch = ragged(SEEDS, device)
    exact = personalized_pagerank(hub_csr, batch, tol=1e-12, dtype=torch.float64)
    best = exact.topk(5).indices
    away = [
        (exact - dense(local_pagerank(walk(hub_csr), batch, epsilon=1e-4, refine=refine), 3000)).abs().gather(1, best)
        for refine in (0, 20)
    ]
    assert away[1].sum() < 0.5 * away[0].sum()


def random_graph(num_nodes: int, num_edges: int, seed: int) -> EdgeList:
    """A graph with hubs: targets are drawn in proportion to a power of their rank."""
    draw = np.random.default_rng(seed)
    source = draw.integers(0, num_nodes, num_edges)
    target = (num_nodes * draw.random(num_edges) ** 3).astype(int)
    return list(zip(source.tolist(), target.tolist(), draw.uniform(0.5, 2, num_edges).tolist(), strict=True))


@pytest.fixture(scope="module")
def hubs() -> EdgeList:
    """3000 nodes, 12000 weighted edges."""
    return random_graph(3000, 12_000, 0)


@pytest.fixture
def hub_csr(hubs: EdgeList, device: torch.device) -> CSR:
    return csr_of(3000, hubs, device, weighted=True)


SEEDS = [[0, 7, 7], [2999], [], [100, 200, 300, 400, 500]]


def test_scores_are_those_of_igraph(hubs: EdgeList, hub_csr: CSR, device: torch.device) -> None:
    loopless = [edge for edge in hubs if edge[0] != edge[1]]
    csr = csr_of(3000, loopless, device, weighted=True)
    graph = igraph.Graph(3000, [edge[:2] for edge in loopless])
    scores = personalized_pagerank(csr, ragged(SEEDS, device)).cpu()
    for row, seeds in enumerate(SEEDS):
        if seeds:
            expected = graph.personalized_pagerank(
                damping=0.85, reset_vertices=seeds, weights=[edge[2] for edge in loopless], implementation="prpack"
            )
            torch.testing.assert_close(
                scores[row].double(), torch.tensor(expected, dtype=torch.float64), atol=1e-5, rtol=0
            )


def test_single_precision_ranks_as_double(hub_csr: CSR, device: torch.device) -> None:
    batch = ragged(SEEDS, device)
    double = personalized_pagerank(hub_csr, batch, tol=1e-12, dtype=torch.float64)
    top = personalized_pagerank_topk(hub_csr, batch, 20)
    expected = personalized_pagerank_topk(hub_csr, batch, 20, tol=1e-12, dtype=torch.float64)
    parted = (expected.scores[:, :-1] - expected.scores[:, 1:] > 1e-6).cpu()
    edge = torch.ones(len(SEEDS), 1, dtype=torch.bool)
    clear = torch.cat([edge, parted], dim=1) & torch.cat([parted, edge], dim=1)
    assert clear.float().mean() > 0.5
    assert torch.equal(top.ids.cpu()[clear], expected.ids.cpu()[clear])
    found = top.ids >= 0
    own = double.gather(1, top.ids.clamp_min(0))[found]
    torch.testing.assert_close(own, top.scores[found].double(), atol=1e-6, rtol=0)


def test_topk_is_the_head_of_all_scores_with_ties_by_id(device: torch.device) -> None:
    star = csr_of(6, [(0, other, 1.0) for other in range(1, 5)], device)
    top = personalized_pagerank_topk(star, ragged([[0], []], device), 8)
    assert top.ids.tolist() == [[0, 1, 2, 3, 4, -1, -1, -1], [-1] * 8]
    assert top.scores[1].eq(0).all()
    assert personalized_pagerank_topk(star, ragged([[0]], device), 3).ids.tolist() == [[0, 1, 2]]


def test_restart_weights_add_up_and_equal_a_dense_restart(hub_csr: CSR, device: torch.device) -> None:
    weights = torch.tensor([1.0, 2.0, 1.0, 5.0], device=device)
    sparse = personalized_pagerank(hub_csr, ragged([[4, 9, 4], [], [8]], device), weights)
    restart = torch.zeros(3, 3000, device=device)
    restart[0, 4], restart[0, 9], restart[2, 8] = 2.0, 2.0, 0.3
    torch.testing.assert_close(sparse, personalized_pagerank(hub_csr, restart))
    local = local_pagerank(hub_csr, ragged([[4, 9, 4], [], [8]], device), weights, epsilon=1e-7)
    assert (sparse - dense(local, 3000)).abs().sum(1).max() < 1e-2


def test_a_transition_made_once_gives_the_same(hub_csr: CSR, device: torch.device) -> None:
    batch = ragged(SEEDS, device)
    assert torch.equal(personalized_pagerank(transition(hub_csr), batch), personalized_pagerank(hub_csr, batch))
    with pytest.raises(ValueError, match="graph holds torch"):
        personalized_pagerank(transition(hub_csr), batch, dtype=torch.float64)


def test_local_ranks_as_the_whole(hub_csr: CSR, device: torch.device) -> None:
    batch = ragged(SEEDS, device)
    whole = personalized_pagerank(hub_csr, batch, tol=1e-12, dtype=torch.float64)
    local = dense(local_pagerank(walk(hub_csr), batch, epsilon=1e-6), 3000).double()
    assert torch.equal(local.topk(10).indices, whole.topk(10).indices) or (whole - local).abs().max() < 2e-5


def test_a_block_that_fails_ends_the_call(monkeypatch: pytest.MonkeyPatch) -> None:
    lone = csr_of(200_000, [], torch.device("cpu"))
    errors = []

    def fail(_graph: object, _residual: object, rows: Ragged, *_rest: object) -> None:
        if rows.values[0] == 0:
            time.sleep(0.3)
        raise RuntimeError("out of memory")

    def call() -> None:
        torch.set_num_threads(2)
        try:
            local_pagerank(lone, Ragged.from_lists([[node] for node in range(20)]), memory_mb=1)
        except RuntimeError as error:
            errors.append(error)

    monkeypatch.setattr("qgrag.graph.ppr_local._push", fail)
    caller = Thread(target=call, daemon=True)
    caller.start()
    caller.join(timeout=30)
    torch.set_num_threads(1)
    assert not caller.is_alive()
    assert str(errors[0]) == "out of memory"


def test_local_agrees_whatever_the_pieces(hub_csr: CSR, device: torch.device) -> None:
    batch = ragged(SEEDS, device)
    wide = local_pagerank(hub_csr, batch, epsilon=1e-5, dtype=torch.float64)
    narrow = local_pagerank(hub_csr, batch, epsilon=1e-5, dtype=torch.float64, memory_mb=1)
    assert wide.nodes.to_lists() == narrow.nodes.to_lists()
    torch.testing.assert_close(wide.scores, narrow.scores)


def test_lone_seed_and_empty_graph(device: torch.device) -> None:
    lone = csr_of(3, [(0, 1, 1.0)], device)
    assert personalized_pagerank(lone, ragged([[2]], device)).tolist() == [[0.0, 0.0, 1.0]]
    local = local_pagerank(lone, ragged([[2], [], [0]], device), epsilon=1e-6)
    assert local.nodes.to_lists() == [[2], [], [0, 1]]
    torch.testing.assert_close(local.scores[:1].cpu(), torch.ones(1), atol=1e-4, rtol=0)
    assert local.bound[1] == 0
    empty = csr_of(0, [], device)
    assert personalized_pagerank(empty, ragged([[]], device)).shape == (1, 0)
    assert local_pagerank(empty, ragged([[]], device)).nodes.to_lists() == [[]]
    assert local_pagerank(lone, ragged([], device)).nodes.to_lists() == []
    assert personalized_pagerank(lone, ragged([], device)).shape == (0, 3)
    assert personalized_pagerank_topk(lone, ragged([], device), 2).ids.shape == (0, 2)
    assert personalized_pagerank_topk(empty, ragged([[]], device), 2).ids.tolist() == [[-1, -1]]


def test_slow_convergence_is_not_taken_for_rounding() -> None:
    size = 50
    edges = [(u + clique, v + clique, 1.0) for clique in (0, size) for u in range(size) for v in range(size) if u != v]
    linked = csr_of(2 * size, [*edges, (0, size, 1.0), (size, 0, 1.0)], torch.device("cpu"), undirected=False)
    restart = Ragged.from_lists([[3]])
    single = personalized_pagerank(linked, restart, damping=0.95)
    double = personalized_pagerank(linked, restart, damping=0.95, tol=1e-13, dtype=torch.float64)
    assert float((single - double).abs().sum()) < 4e-5


@pytest.mark.parametrize("scale", [3e38, 1e-44])
def test_extreme_restart_weights_keep_their_shares(scale: float, device: torch.device) -> None:
    csr = csr_of(3, [(0, 1, 1.0), (1, 2, 1.0)], device)
    seeds = ragged([[0, 2, 2], [1]], device)
    expected = personalized_pagerank(csr, seeds)
    weights = torch.full((4,), scale, device=device)
    torch.testing.assert_close(personalized_pagerank(csr, seeds, weights), expected)
    torch.testing.assert_close(dense(local_pagerank(csr, seeds, weights), 3), dense(local_pagerank(csr, seeds), 3))
    restart = torch.tensor([[scale, 0, scale], [0, scale, 0]], device=device)
    evenly = personalized_pagerank(csr, ragged([[0, 2], [1]], device))
    torch.testing.assert_close(personalized_pagerank(csr, restart), evenly)


def test_an_iteration_bound_is_kept_and_said(hub_csr: CSR, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        scores = personalized_pagerank(hub_csr, ragged([[1]], hub_csr.device), max_iter=2)
    assert "after 2 iterations" in caplog.text
    assert float(scores.sum()) == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"damping": 1.0}, "damping must be at least 0 and less than 1; got 1.0"),
        ({"damping": float("nan")}, "damping must be"),
        ({"tol": 1e-9}, "tol must be at least 2e-07 in torch.float32; got 1e-09"),
        ({"tol": 0.0, "dtype": torch.float64}, "tol must be at least 4e-16 in torch.float64; got 0.0"),
        ({"max_iter": 2.5}, "max_iter must be a whole number; got 2.5"),
        ({"max_iter": 0}, "max_iter must be at least 1; got 0"),
        ({"block": 0}, "block must be at least 1; got 0"),
        ({"dtype": torch.float16}, "dtype must be torch"),
        ({"weights": torch.tensor([-1.0])}, "weights holds -1.0 at place 0"),
        ({"weights": torch.tensor([float("nan")])}, "weights holds nan at place 0"),
        ({"weights": torch.ones(2)}, r"weights must be \[1\]"),
    ],
)
def test_bad_arguments_are_named(arguments: dict, message: str) -> None:
    csr = csr_of(3, [(0, 1, 1.0)], torch.device("cpu"))
    with pytest.raises(ValueError, match=message):
        personalized_pagerank(csr, Ragged.from_lists([[0]]), **arguments)


def test_bad_restarts_are_named(device: torch.device) -> None:
    csr = csr_of(3, [(0, 1, 1.0)], device)
    with pytest.raises(ValueError, match="restart holds 3 at place 0"):
        personalized_pagerank(csr, ragged([[3]], device))
    with pytest.raises(ValueError, match="seeds holds 3 at place 0"):
        local_pagerank(csr, ragged([[3]], device))
    with pytest.raises(ValueError, match=r"restart must be \[B, 3\]; got shape \(1, 4\)"):
        personalized_pagerank(csr, torch.ones(1, 4, device=device))
    with pytest.raises(ValueError, match="restart holds nan"):
        personalized_pagerank(csr, torch.full((1, 3), torch.nan, device=device))
    with pytest.raises(ValueError, match="epsilon must be above 0; got 0"):
        local_pagerank(csr, ragged([[0]], device), epsilon=0)
    with pytest.raises(ValueError, match="k must be at least 1; got 0"):
        personalized_pagerank_topk(csr, ragged([[0]], device), 0)
