"""Expansion, shortest paths and induced edges: ours in a batch, and the peers query by query."""

from importlib.util import find_spec
from itertools import combinations
from typing import Any

import torch
from _graphs import Graph, neighbour_table, random_seeds
from _timing import Contender, Result, race
from torch import Tensor

from qgrag.graph import Paths, Ragged, expand, induced_subgraph, shortest_paths

Adjacency = Any


def race_expansion(
    num_nodes: int, batch: int, rounds: int, device: torch.device, *, peers: bool
) -> tuple[list[Result], dict]:
    """Two hops from 15 seeds over a table of three neighbours a node."""
    table = neighbour_table(num_nodes, 3, device)
    seeds = random_seeds(num_nodes, batch, 15, device)
    lists = seeds.to_lists()
    contenders = [Contender("ours", lambda: expand(table, seeds, 2), batch)]
    if peers and find_spec("networkx"):
        adjacency = directed_adjacency(table)
        contenders.append(
            Contender("networkx, sets", lambda: [breadth_first(adjacency, row, 2) for row in lists], batch)
        )
    from torch_geometric.utils import k_hop_subgraph

    edges = torch.stack([torch.arange(num_nodes, device=device).repeat_interleave(3), table.flatten()])
    few = [torch.tensor(row, device=device) for row in lists[:2]]
    contenders.append(
        Contender(
            "torch_geometric k_hop_subgraph",
            lambda: [k_hop_subgraph(row, 2, edges, num_nodes=num_nodes, flow="target_to_source")[0] for row in few],
            len(few),
            "also returns the edges",
        )
    )
    results = race(contenders, rounds, device)
    ours = results[0].answer
    hops = Ragged(ours.hop, ours.nodes.ptr).to_lists()
    own = [dict(zip(*pair, strict=True)) for pair in zip(ours.nodes.to_lists(), hops, strict=True)]
    agreement = {}
    for result in results[1:]:
        if result.name.startswith("networkx"):
            agreement[result.name] = own == result.answer
        else:
            agreement[result.name] = all(set(a) == set(b.tolist()) for a, b in zip(own, result.answer, strict=False))
    met = ours.nodes.values.numel() / batch
    return results, {"agreement": agreement, "nodes_met": met}


def directed_adjacency(table: Tensor) -> Adjacency:
    """networkx's own adjacency of the table's edges."""
    import networkx as nx

    graph = nx.DiGraph()
    graph.add_nodes_from(range(table.size(0)))
    graph.add_edges_from((row, col) for row, cols in enumerate(table.tolist()) for col in cols)
    return graph.adj


def breadth_first(adjacency: Adjacency, seeds: list[int], hops: int) -> dict[int, int]:
    """Hop of each node met, with Python sets: the usual hand-written search."""
    hop = dict.fromkeys(seeds, 0)
    frontier = set(seeds)
    for level in range(1, hops + 1):
        frontier = {other for node in frontier for other in adjacency[node]} - hop.keys()
        hop.update(dict.fromkeys(frontier, level))
    return hop


def race_paths(graph: Graph, batch: int, rounds: int, *, quick: bool) -> tuple[list[Result], dict]:
    """Up to four hops between all 15 pairs of six seeds, paths rebuilt as Python lists by every contender."""
    device = graph.csr.device
    seeds = random_seeds(graph.num_nodes, batch, 6, device)
    lists = seeds.to_lists()
    contenders = [
        Contender("ours", lambda: with_lists(shortest_paths(graph.csr, seeds)), batch, "rebuilt as lists"),
        Contender("ours, tensors", lambda: shortest_paths(graph.csr, seeds), batch),
    ]
    if find_spec("networkx") and graph.num_nodes <= 200_000:
        made = undirected(graph)
        some = lists[: min(batch, 64)]
        contenders.append(Contender("networkx, bidirectional", lambda: networkx_paths(made, some), len(some)))
    few = lists[: min(batch, 2 if quick else 4)]
    if find_spec("igraph"):
        import igraph

        other = igraph.Graph(graph.num_nodes, graph.pairs())
        contenders.append(Contender("igraph", lambda: igraph_paths(other, few), len(few)))
    if find_spec("rustworkx") and graph.num_nodes <= 10_000:
        contenders.append(Contender("rustworkx, dijkstra", rustworkx_runner(graph, few), len(few)))
    results = race(contenders, rounds, device)
    agreement = {result.name: same_lengths(results[0].answer, lists, result.answer) for result in results[2:]} | {
        "edges are real": edges_exist(graph, results[0].answer)
    }
    found = results[0].answer.num_paths / batch
    return results, {"agreement": agreement, "paths_found": found, "two_hop_slots": two_hop_slots(graph, seeds)}


def with_lists(paths: Paths) -> Paths:
    """Nodes and edges as Python lists too, as the peers give them."""
    paths.nodes.to_lists(), paths.edges.to_lists()
    return paths


def undirected(graph: Graph) -> Any:
    """networkx graph without weights."""
    import networkx as nx

    made = nx.Graph()
    made.add_nodes_from(range(graph.num_nodes))
    made.add_edges_from(graph.edge_index.t().tolist())
    return made


def networkx_paths(graph: Any, lists: list[list[int]]) -> list[dict[tuple[int, int], list[int]]]:
    """One bidirectional search a pair; what is longer than four hops is dropped."""
    import networkx as nx

    answers = []
    for row in lists:
        found = {}
        for source, target in combinations(row, 2):
            try:
                nodes = nx.shortest_path(graph, source, target)
            except nx.NetworkXNoPath:
                continue
            if len(nodes) <= 5:
                found[source, target] = nodes
        answers.append(found)
    return answers


def igraph_paths(graph: Any, lists: list[list[int]]) -> list[dict[tuple[int, int], list[int]]]:
    """One search a source to all later seeds."""
    answers = []
    for row in lists:
        found = {}
        for place, source in enumerate(row[:-1]):
            for nodes in graph.get_shortest_paths(source, row[place + 1 :]):
                if 2 <= len(nodes) <= 5:
                    found[source, nodes[-1]] = nodes
        answers.append(found)
    return answers


def rustworkx_runner(graph: Graph, lists: list[list[int]]) -> Any:
    """Its Dijkstra to a target; rustworkx has no bidirectional search."""
    import rustworkx

    made = rustworkx.PyGraph(multigraph=False)
    made.add_nodes_from(list(range(graph.num_nodes)))
    made.add_edges_from_no_data([tuple(edge) for edge in graph.edge_index.t().tolist()])

    def run() -> list[dict[tuple[int, int], list[int]]]:
        answers = []
        for row in lists:
            found = {}
            for source, target in combinations(row, 2):
                path = rustworkx.dijkstra_shortest_paths(made, source, target=target)
                if target in path and len(path[target]) <= 5:
                    found[source, target] = list(path[target])
            answers.append(found)
        return answers

    return run


def same_lengths(ours: Paths, lists: list[list[int]], theirs: list[dict[tuple[int, int], list[int]]]) -> bool:
    """Whether both found paths for the same pairs, equally long."""
    own: list[dict[tuple[int, int], int]] = [{} for _ in lists]
    ends = zip(ours.source.tolist(), ours.target.tolist(), strict=True)
    for query, pair, length in zip(ours.query.tolist(), ends, ours.nodes.counts().tolist(), strict=True):
        own[query][pair] = length
    return all(
        mine == {pair: len(nodes) for pair, nodes in other.items()} for mine, other in zip(own, theirs, strict=False)
    )


def edges_exist(graph: Graph, paths: Paths) -> bool:
    """Whether each step's edge joins the two nodes around it, in the direction that is said."""
    edges = graph.edge_index[:, paths.edges.values]
    row = paths.edges.batch()
    place = torch.arange(row.numel(), device=row.device) + row
    step = torch.stack([paths.nodes.values[place], paths.nodes.values[place + 1]])
    along = torch.where(paths.direction > 0, edges, edges.flip(0))
    return bool(torch.equal(step, along))


def two_hop_slots(graph: Graph, seeds: Ragged) -> float:
    """Slots within two hops of a query's seeds, on average."""
    degree = graph.csr.degree()
    _, slot = graph.csr.slots(seeds.values)
    return float(degree[seeds.values].sum() + degree[graph.csr.col[slot]].sum()) / seeds.num_rows


def race_subgraph(graph: Graph, batch: int, rounds: int) -> tuple[list[Result], dict]:
    """Edges among the nodes within one hop of three seeds."""
    device = graph.csr.device
    nodes = expand(graph.csr, random_seeds(graph.num_nodes, batch, 3, device), 1).nodes
    lists = nodes.to_lists()
    contenders = [Contender("ours", lambda: induced_subgraph(graph.csr, nodes), batch)]
    if find_spec("igraph"):
        import igraph

        made = igraph.Graph(graph.num_nodes, graph.pairs())
        some = lists[:16]
        contenders.append(
            Contender(
                "igraph induced_subgraph",
                lambda: [made.induced_subgraph(row, implementation="create_from_scratch").ecount() for row in some],
                len(some),
            )
        )
    from torch_geometric.utils import subgraph

    few = [torch.tensor(row, device=device) for row in lists[:4]]
    contenders.append(
        Contender(
            "torch_geometric subgraph",
            lambda: [subgraph(row, graph.edge_index, num_nodes=graph.num_nodes)[0].size(1) for row in few],
            len(few),
        )
    )
    results = race(contenders, rounds, device)
    own = results[0].answer.counts().tolist()
    agreement = {result.name: own[: len(result.answer)] == result.answer for result in results[1:]}
    return results, {"agreement": agreement, "edges_found": sum(own) / batch}
