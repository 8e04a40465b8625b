"""Personalised PageRank: ours in a batch, and the peers as they are used."""

import os
from concurrent.futures import ProcessPoolExecutor
from importlib.util import find_spec
from multiprocessing import get_context
from typing import Any

import numpy as np
import torch
from _graphs import Graph, random_seeds
from _timing import Contender, Result, race
from torch import Tensor

from qgrag.graph import (
    LocalPageRank,
    Ragged,
    Transition,
    local_pagerank,
    personalized_pagerank,
    personalized_pagerank_topk,
    transition,
    walk,
)

DAMPING, TOLERANCE = 0.85, 1e-6
LIMITS = {"igraph": 2_000_000, "scipy": 2_000_000, "networkx": 10_000, "torch_geometric": 100_000}
"""Largest graph, in nodes, on which each peer is run: beyond, one answer takes minutes."""


class CountingTransition(Transition):
    """Counts products, for the share of the machine's gather rate."""

    steps = 0

    def step(self, x: Tensor) -> Tensor:
        """One product more."""
        CountingTransition.steps += 1
        return super().step(x)


def products_a_column(graph: Transition, seeds: Ragged, block: int) -> float:
    """Products that a column takes part in, over the blocks that answer ``seeds``."""
    counting = CountingTransition(**vars(graph))
    CountingTransition.steps = 0
    personalized_pagerank_topk(counting, seeds, 10, block=block)
    return CountingTransition.steps * min(block, seeds.num_rows) / seeds.num_rows


def igraph_of(graph: Graph) -> Any:
    """The same edges as an igraph graph; its PageRank leaves out weights that are named and not listed."""
    import igraph

    made = igraph.Graph(graph.num_nodes, graph.pairs())
    made["weights"] = graph.weight.tolist()
    return made


def igraph_scores(graph: Any, seeds: list[list[int]]) -> np.ndarray:
    """One call a query, as HippoRAG makes it."""
    return np.array(
        [
            graph.personalized_pagerank(
                damping=DAMPING, reset_vertices=row, weights=graph["weights"], directed=False, implementation="prpack"
            )
            for row in seeds
        ]
    )


def scipy_scores(matrix: Any, seeds: list[list[int]]) -> np.ndarray:
    """Power iteration over all columns at once, looking at the change every fourth time.

    It stops where ours does, also where rounding keeps the change from falling.
    """
    s = np.zeros((matrix.shape[0], len(seeds)), dtype=np.float32)
    for column, row in enumerate(seeds):
        s[row, column] = 1 / len(row)
    x, last = s, np.inf
    for iteration in range(1, 200):
        y = DAMPING * (matrix @ x) + (1 - DAMPING) * s
        if iteration % 4 == 0:
            change = np.abs(y - x).sum(0).max()
            if change < TOLERANCE or (change < 8e-6 and change > 0.9 * last):
                return y
            last = change
        x = y
    raise RuntimeError("scipy's power iteration did not converge")


def scipy_of(graph: Graph) -> Any:
    """W D^-1 as float32 CSR."""
    from scipy.sparse import csr_array

    source, target = graph.edge_index.cpu().numpy()
    weight = graph.weight.cpu().numpy()
    n = graph.num_nodes
    matrix = csr_array((np.r_[weight, weight], (np.r_[target, source], np.r_[source, target])), shape=(n, n))
    return (matrix @ csr_array((1 / matrix.sum(0), (range(n), range(n))), shape=(n, n))).astype(np.float32).tocsr()


_worker_graph: Any = None


def _load_worker(path: str) -> None:
    global _worker_graph
    import igraph

    held = np.load(path)
    _worker_graph = igraph.Graph(int(held["nodes"]), held["edges"])
    _worker_graph["weights"] = held["weight"].tolist()


def _work(seeds: list[list[int]]) -> int:
    return len(igraph_scores(_worker_graph, seeds))


class TwoProcesses:
    """igraph spread over two processes of one thread each, started and loaded before the clock runs."""

    def __init__(self, graph: Graph, folder: str) -> None:
        path = os.path.join(folder, f"{graph.name}.npz")
        np.savez(path, nodes=graph.num_nodes, edges=graph.pairs(), weight=graph.weight.cpu().numpy())
        threads = os.environ.get("OMP_NUM_THREADS")
        os.environ["OMP_NUM_THREADS"] = "1"
        self.pool = ProcessPoolExecutor(2, get_context("spawn"), _load_worker, (path,))
        list(self.pool.map(_work, [[[0]], [[1]]]))
        if threads is None:
            del os.environ["OMP_NUM_THREADS"]
        else:
            os.environ["OMP_NUM_THREADS"] = threads

    def answer(self, seeds: list[list[int]]) -> int:
        """Half of the queries each."""
        half = len(seeds) // 2
        return sum(self.pool.map(_work, [seeds[:half], seeds[half:]]))


def race_pagerank(graph: Graph, batch: int, rounds: int, folder: str, *, quick: bool) -> tuple[list[Result], dict]:
    """Global form: agreement of the ten best and the largest difference, share of the gather rate's work."""
    device = graph.csr.device
    seeds = random_seeds(graph.num_nodes, batch, 5, device)
    lists = seeds.to_lists()
    matrix = transition(graph.csr)
    contenders = [Contender("ours", lambda: personalized_pagerank(matrix, seeds), batch)]
    if graph.num_nodes <= 200_000:
        contenders.append(
            Contender("ours, 10 best only", lambda: personalized_pagerank_topk(matrix, seeds, 10), batch, "no [B, N]")
        )
    few = lists[: 2 if quick or graph.num_nodes > 200_000 else 4]
    pools = []
    if find_spec("igraph") and graph.num_nodes <= LIMITS["igraph"]:
        peer = igraph_of(graph)
        contenders.append(Contender("igraph", lambda: igraph_scores(peer, few), len(few), "a call a query"))
        if not quick and batch > 1:
            pools.append(TwoProcesses(graph, folder))
            contenders.append(Contender("igraph, 2 processes", lambda: pools[0].answer(few), len(few)))
    if find_spec("scipy") and graph.num_nodes <= LIMITS["scipy"]:
        sparse = scipy_of(graph)
        some = lists[: 64 if quick else batch if graph.num_nodes <= 200_000 else 16]
        contenders.append(
            Contender("scipy", lambda: scipy_scores(sparse, some).T, len(some), f"{len(some)} columns at once")
        )
    if find_spec("networkx") and graph.num_nodes <= LIMITS["networkx"]:
        contenders.append(Contender("networkx", networkx_runner(graph, lists[:2]), min(2, batch)))
    results = race(contenders, rounds, device)
    for pool in pools:
        pool.pool.shutdown()
    ours = results[0].answer.cpu()
    checked = {}
    for result in results[1:]:
        if isinstance(result.answer, np.ndarray):
            checked[result.name] = compare(ours, torch.from_numpy(result.answer).float())
    double = personalized_pagerank(graph.csr, seeds.rows(0, min(batch, 8)), tol=1e-12, dtype=torch.float64).cpu()
    checked["float64"] = compare(ours, double.float())
    products = products_a_column(matrix, seeds.rows(0, min(batch, 64)), 32)
    return results, {
        "agreement": checked,
        "gathered_rows_of_32": graph.csr.num_slots * products / 32,
        "products": products,
    }


def networkx_runner(graph: Graph, lists: list[list[int]]) -> Any:
    """networkx.pagerank over a weighted undirected graph."""
    import networkx as nx

    made = nx.Graph()
    made.add_nodes_from(range(graph.num_nodes))
    made.add_weighted_edges_from(zip(*graph.edge_index.cpu().tolist(), graph.weight.cpu().tolist(), strict=True))

    def run() -> np.ndarray:
        answers = []
        for row in lists:
            ranks = nx.pagerank(made, DAMPING, {node: 1 / len(row) for node in row}, tol=1e-10)
            answers.append([ranks[node] for node in range(graph.num_nodes)])
        return np.array(answers)

    return run


def compare(ours: Tensor, theirs: Tensor) -> dict[str, float]:
    """Share of the ten best that are the same, share of queries where all ten are, largest difference of a score."""
    ours = ours[: theirs.size(0)]
    k = min(10, ours.size(1))
    a, b = ours.topk(k, 1).indices, theirs.topk(k, 1).indices
    same = (a[:, :, None] == b[:, None, :]).any(2).float()
    return {
        "top10_overlap": float(same.mean()),
        "top10_equal": float(same.all(1).float().mean()),
        "max_difference": float((ours - theirs).abs().max()),
    }


def dense(local: LocalPageRank, num_nodes: int) -> Tensor:
    """Local scores as ``[B, N]``."""
    out = torch.zeros(local.nodes.num_rows, num_nodes, device=local.scores.device)
    out[local.nodes.batch(), local.nodes.values] = local.scores
    return out


def race_local(graph: Graph, batch: int, rounds: int, epsilon: float, *, quick: bool) -> tuple[list[Result], dict]:
    """Local form at one epsilon: agreement is with our own converged scores on 100 queries."""
    device = graph.csr.device
    seeds = random_seeds(graph.num_nodes, batch, 5, device)
    laid_out = walk(graph.csr)
    contenders = [Contender("ours, local", lambda: local_pagerank(laid_out, seeds, epsilon=epsilon), batch)]
    few = seeds.to_lists()[: 2 if quick or graph.num_nodes > 200_000 else 4]
    if find_spec("igraph") and graph.num_nodes <= LIMITS["igraph"]:
        peer = igraph_of(graph)
        contenders.append(Contender("igraph", lambda: igraph_scores(peer, few), len(few), "exact, a call a query"))
    if find_spec("numba") and graph.num_nodes <= LIMITS["torch_geometric"] and device.type == "cpu":
        from torch_geometric.utils import get_ppr

        both = torch.cat([graph.edge_index, graph.edge_index.flip(0)], 1)
        target = torch.tensor(few).flatten()
        contenders.append(
            Contender(
                "torch_geometric get_ppr",
                lambda: get_ppr(both, alpha=1 - DAMPING, eps=epsilon, target=target, num_nodes=graph.num_nodes),
                len(few),
                "without weights: another problem",
            )
        )
    results = race(contenders, rounds, device)
    checked = random_seeds(graph.num_nodes, 100, 5, device)
    exact = personalized_pagerank(graph.csr, checked)
    local = local_pagerank(laid_out, checked, epsilon=epsilon)
    away = (exact - dense(local, graph.num_nodes)).abs().sum(1)
    agreement = compare(dense(local, graph.num_nodes).cpu(), exact.cpu())
    agreement |= {"l1_error": float(away.mean()), "l1_bound": float(local.bound.mean())}
    touched = int(graph.csr.degree()[local.nodes.values].sum()) / 100
    return results, {"agreement": {"exact, 100 queries": agreement}, "slots_of_pushed_nodes": touched}
