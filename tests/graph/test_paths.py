"""Shortest paths and their merging against networkx."""

from itertools import combinations, pairwise

import networkx as nx
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from qgrag.graph import Paths, Ragged, drop_contained, shortest_paths
from qgrag.graph.path_search import _can_meet
from tests.graph.conftest import PROPERTY, csr_of, graphs_and_seeds, networkx_of, ragged

Steps = tuple[list[int], list[int]]


def all_shortest(graph: nx.MultiGraph, source: int, target: int, max_hops: int) -> list[Steps]:
    """Every shortest path as nodes and edge ids, in the order of the tie rule."""
    try:
        by_nodes = list(nx.all_shortest_paths(nx.Graph(graph), source, target))
    except nx.NetworkXNoPath:
        return []
    paths: list[Steps] = []
    for nodes in by_nodes:
        if len(nodes) - 1 > max_hops:
            return []
        edges: list[list[int]] = [[]]
        for u, v in pairwise(nodes):
            edges = [[*done, edge["id"]] for done in edges for edge in graph[u][v].values()]
        paths += [(nodes, one) for one in edges]
    return sorted(paths, key=outwards)


def outwards(path: Steps) -> tuple:
    """The tie rule: middle node, then towards the source, then towards the target; edges the same way."""
    nodes, edges = path
    middle = (len(nodes)) // 2
    near = [item for step in zip(nodes[:middle][::-1], edges[:middle][::-1], strict=True) for item in step]
    far = [item for step in zip(nodes[middle + 1 :], edges[middle:], strict=True) for item in step]
    return nodes[middle], half_rank(near), half_rank(far)


def half_rank(steps: list[int]) -> tuple[int, ...]:
    """Node before edge at each step outwards, compared from the middle."""
    return tuple(steps)


def unpack(paths: Paths) -> list[tuple[int, Steps]]:
    """(query, (nodes, edges)) of each path."""
    return list(
        zip(paths.query.tolist(), zip(paths.nodes.to_lists(), paths.edges.to_lists(), strict=True), strict=True)
    )


@PROPERTY
@given(graphs_and_seeds(), st.integers(1, 6), st.integers(1, 4), st.sampled_from([1, 256]))
def test_paths_are_those_of_networkx(case: tuple, max_hops: int, max_paths: int, memory_mb: int) -> None:
    num_nodes, edges, seeds = case
    csr = csr_of(num_nodes, edges, torch.device("cpu"))
    graph = networkx_of(num_nodes, edges)
    paths = shortest_paths(
        csr, ragged(seeds, csr.device), max_hops=max_hops, max_paths_per_pair=max_paths, memory_mb=memory_mb
    )
    expected = []
    for query, row in enumerate(seeds):
        for source, target in combinations(dict.fromkeys(row), 2):
            expected += [(query, path) for path in all_shortest(graph, source, target, max_hops)[:max_paths]]
    assert [(q, [list(n), list(e)]) for q, (n, e) in unpack(paths)] == [(q, [n, e]) for q, (n, e) in expected]
    assert paths.source.tolist() == [nodes[0] for _, (nodes, _) in expected]
    assert paths.target.tolist() == [nodes[-1] for _, (nodes, _) in expected]
    for (_, (nodes, ids)), signs in zip(expected, Ragged(paths.direction, paths.edges.ptr).to_lists(), strict=True):
        for u, v, edge_id, sign in zip(nodes, nodes[1:], ids, signs, strict=False):
            assert edges[edge_id][:2] == ((u, v) if sign > 0 else (v, u))


@PROPERTY
@given(graphs_and_seeds(max_seeds=6), st.integers(1, 3))
def test_contained_paths_are_dropped_and_no_others(case: tuple, max_paths: int) -> None:
    num_nodes, edges, seeds = case
    csr = csr_of(num_nodes, edges, torch.device("cpu"))
    paths = shortest_paths(csr, ragged(seeds, csr.device), max_paths_per_pair=max_paths)
    steps = list(zip(paths.query.tolist(), paths.edges.to_lists(), strict=True))

    def within(inner: list[int], outer: list[int]) -> bool:
        windows = [outer[start : start + len(inner)] for start in range(len(outer) - len(inner) + 1)]
        return len(inner) < len(outer) and (inner in windows or inner[::-1] in windows)

    expected = [
        place
        for place, (query, inner) in enumerate(steps)
        if not any(query == other and within(inner, outer) for other, outer in steps)
    ]
    merged = drop_contained(paths)
    assert unpack(merged) == [unpack(paths)[place] for place in expected]
    assert merged.num_queries == paths.num_queries


def test_a_path_inside_another_goes_whichever_way_it_runs(device: torch.device) -> None:
    chain = csr_of(4, [(0, 1, 1.0), (2, 1, 1.0), (2, 3, 1.0)], device)
    paths = shortest_paths(chain, ragged([[2, 1, 3, 0], [2, 1]], device))
    merged = drop_contained(paths)
    assert merged.nodes.to_lists() == [[3, 2, 1, 0], [2, 1]]
    assert merged.edges.to_lists() == [[2, 1, 0], [1]]
    assert Ragged(merged.direction, merged.edges.ptr).to_lists() == [[-1, 1, -1], [1]]


def test_parallel_edges_are_paths_of_their_own(device: torch.device) -> None:
    csr = csr_of(2, [(1, 0, 1.0), (0, 1, 1.0), (0, 0, 1.0)], device)
    one = shortest_paths(csr, ragged([[0, 1]], device))
    assert one.edges.to_lists() == [[0]]
    assert one.direction.tolist() == [-1]
    both = shortest_paths(csr, ragged([[0, 1]], device), max_paths_per_pair=9)
    assert both.edges.to_lists() == [[0], [1]]


def test_two_components_lone_nodes_and_no_seeds_give_nothing(device: torch.device) -> None:
    csr = csr_of(5, [(0, 1, 1.0), (2, 3, 1.0)], device)
    paths = shortest_paths(csr, ragged([[0, 2], [4, 0], [], [3], [1, 1]], device))
    assert paths.num_paths == 0
    assert paths.num_queries == 5
    assert drop_contained(paths).num_paths == 0
    empty = shortest_paths(csr_of(0, [], device), ragged([[]], device))
    assert empty.num_paths == 0


def test_hubs_stay_within_the_block(device: torch.device) -> None:
    spokes = 100_000
    edges = [(0, other, 1.0) for other in range(2, spokes)] + [(other, 1, 1.0) for other in range(2, spokes)]
    csr = csr_of(spokes, edges, device)
    paths = shortest_paths(csr, ragged([[0, 1], [5, 6], [0, 9]], device), memory_mb=1)
    assert paths.nodes.to_lists() == [[0, 2, 1], [5, 0, 6], [0, 9]]


def test_tables_of_many_queries_stay_within_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    queries, num_nodes = 200, 20_000
    empty = csr_of(num_nodes, [], torch.device("cpu"))
    held = []

    def note(*arguments: torch.Tensor) -> torch.Tensor:
        held.append((int(arguments[4][-1]) + 1) * num_nodes * 8)
        return _can_meet(*arguments)

    monkeypatch.setattr("qgrag.graph.path_search._can_meet", note)
    paths = shortest_paths(empty, Ragged.from_lists([[row, row + 1] for row in range(queries)]), memory_mb=2)
    assert paths.num_paths == 0
    assert max(held) <= 2 * 2**20
    assert sum(held) == queries * num_nodes * 8


def test_bad_arguments_are_named(device: torch.device) -> None:
    one_way = csr_of(3, [(0, 1, 1.0)], device, undirected=False)
    with pytest.raises(ValueError, match="undirected=True"):
        shortest_paths(one_way, ragged([[0, 1]], device))
    csr = csr_of(3, [(0, 1, 1.0)], device)
    with pytest.raises(ValueError, match="seeds holds 3 at place 1"):
        shortest_paths(csr, ragged([[0, 3]], device))
    with pytest.raises(ValueError, match="max_hops must be at least 1; got 0"):
        shortest_paths(csr, ragged([[0, 1]], device), max_hops=0)
    with pytest.raises(ValueError, match="max_paths_per_pair must be at least 1; got 0"):
        shortest_paths(csr, ragged([[0, 1]], device), max_paths_per_pair=0)
