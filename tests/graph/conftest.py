"""Devices, random graphs and short names shared by the kernels' tests."""

from collections.abc import Iterator

import networkx as nx
import pytest
import torch
from hypothesis import settings
from hypothesis import strategies as st

from qgrag.graph import CSR, Ragged, to_csr

PROPERTY = settings(deadline=None, max_examples=60, derandomize=True)

EdgeList = list[tuple[int, int, float]]


@pytest.fixture(params=["cpu", pytest.param("cuda", marks=[pytest.mark.cuda])], scope="session")
def device(request: pytest.FixtureRequest) -> torch.device:
    """Each device that a kernel must run on."""
    if request.param == "cuda" and not torch.cuda.is_available():
        pytest.skip("no CUDA device")
    return torch.device(request.param)


@pytest.fixture(scope="module", autouse=True)
def one_thread() -> Iterator[None]:
    """Tensors this small are slower on several threads, and much slower on a busy machine."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@st.composite
def graphs(draw: st.DrawFn, max_nodes: int = 12, max_edges: int = 30) -> tuple[int, EdgeList]:
    """Node count and weighted edges: parallel edges, self-loops, lone nodes, zero weights, and often a hub."""
    num_nodes = draw(st.integers(1, max_nodes))
    node = st.integers(0, num_nodes - 1)
    weight = st.sampled_from([0.0, 0.25, 0.5, 1.0, 1.0, 2.0, 8.0])
    edges = draw(st.lists(st.tuples(node, node, weight), max_size=max_edges))
    if draw(st.booleans()):
        hub = draw(node)
        edges += [(hub, other, draw(weight)) for other in range(num_nodes) if draw(st.booleans())]
    return num_nodes, edges


@st.composite
def graphs_and_seeds(draw: st.DrawFn, max_seeds: int = 5) -> tuple[int, EdgeList, list[list[int]]]:
    """A graph and ragged seed sets, empty rows and repeats among them."""
    num_nodes, edges = draw(graphs())
    row = st.lists(st.integers(0, num_nodes - 1), max_size=max_seeds)
    return num_nodes, edges, draw(st.lists(row, min_size=1, max_size=4))


def csr_of(
    num_nodes: int, edges: EdgeList, device: torch.device, *, weighted: bool = False, undirected: bool = True
) -> CSR:
    """The edges as a CSR."""
    edge_index = torch.tensor([edge[:2] for edge in edges], dtype=torch.int64, device=device).reshape(-1, 2).t()
    weight = torch.tensor([edge[2] for edge in edges], device=device) if weighted else None
    return to_csr(edge_index, weight, num_nodes=num_nodes, undirected=undirected)


def networkx_of(num_nodes: int, edges: EdgeList, *, weighted: bool = False, undirected: bool = True) -> nx.Graph:
    """The same edges for networkx, parallel ones kept, each with its id."""
    graph = nx.MultiGraph() if undirected else nx.MultiDiGraph()
    graph.add_nodes_from(range(num_nodes))
    for edge_id, (source, target, weight) in enumerate(edges):
        graph.add_edge(source, target, id=edge_id, weight=weight if weighted else 1.0)
    return graph


def ragged(rows: list[list[int]], device: torch.device) -> Ragged:
    """Short for :meth:`Ragged.from_lists`."""
    return Ragged.from_lists(rows, device)
