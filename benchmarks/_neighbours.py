"""kNN graphs: exact beside FAISS, approximate beside pynndescent, at measured recall."""

from importlib.util import find_spec
from typing import Any

import torch
from _timing import Contender, Result, race
from torch import Tensor

from qgrag.graph import KNNGraph, append_knn, knn_graph, knn_recall, remove_knn
from qgrag.graph.knn_approx import LIST_LENGTH


def race_exact(x: Tensor, k: int, rounds: int) -> tuple[list[Result], dict]:
    """The exact graph; agreement is the share of rows with the same neighbour set."""
    contenders = [Contender("ours, exact", lambda: knn_graph(x, k))]
    if find_spec("faiss"):
        contenders.append(Contender("faiss IndexFlatIP", lambda: faiss_flat(x, k)))
    results = race(contenders, rounds, x.device)
    ours = results[0].answer
    agreement = {result.name: same_rows(x, ours, result.answer) for result in results[1:]}
    return results, {"agreement": agreement, "gemm_flop": float(x.size(0)) ** 2 * x.size(1)}


def faiss_flat(x: Tensor, k: int) -> Tensor:
    """Build and search, one more neighbour than wanted since a vector finds itself."""
    import faiss

    index = faiss.IndexFlatIP(x.size(1))
    vectors = x.cpu().numpy()
    index.add(vectors)
    return torch.from_numpy(index.search(vectors, k + 1)[1])


def same_rows(x: Tensor, ours: KNNGraph, found: Tensor) -> dict[str, float]:
    """Rows with the same set, and rows whose sets differ in more than ties below 1e-6."""
    k = ours.index.size(1)
    own = torch.arange(len(found))[:, None]
    others = torch.sort((found == own).int(), dim=1, stable=True).indices[:, :k]
    theirs = found.gather(1, others).to(x.device)
    equal = (ours.index.sort(1).values == theirs.sort(1).values).all(1)
    rows = (~equal).nonzero().squeeze(1)
    lowest = (x[rows][:, None, :] * x[theirs[rows]]).sum(2).amin(1)
    apart = (lowest - ours.score[rows, -1]).abs() > 1e-6
    return {"same_neighbours": float(equal.float().mean()), "rows_apart_by_more_than_1e-6": int(apart.sum())}


def race_approximate(x: Tensor, k: int, rounds: int, probes: int) -> tuple[list[Result], dict]:
    """Inverted lists beside pynndescent (compiled before the clock runs) and FAISS; recall on a sample."""
    contenders = [Contender(f"ours, ivf {probes} probes", lambda: knn_graph(x, k, method="ivf", probes=probes))]
    if find_spec("pynndescent"):
        contenders.append(Contender("pynndescent", lambda: nn_descent(x, k)))
    if find_spec("faiss"):
        contenders.append(Contender("faiss IVF, 8 probes", lambda: faiss_ivf(x, k)))
        if x.size(0) <= 20_000 and x.device.type == "cpu":
            contenders.append(Contender("ours, hnsw (faiss)", lambda: knn_graph(x, k, method="hnsw")))
    results = race(contenders, rounds, x.device)
    recall = {}
    for result in results:
        graph = result.answer if isinstance(result.answer, KNNGraph) else without_self(result.answer, k, x.device)
        recall[result.name] = {"recall": knn_recall(graph, x)}
    return results, {"agreement": recall}


def nn_descent(x: Tensor, k: int) -> Tensor:
    """pynndescent's graph at its usual setting for k = 10: 15 neighbours, itself among them."""
    from pynndescent import NNDescent

    index = NNDescent(x.cpu().numpy(), metric="cosine", n_neighbors=max(15, k + 1), random_state=0, n_jobs=2)
    return torch.from_numpy(index.neighbor_graph[0]).long()


def faiss_ivf(x: Tensor, k: int) -> Tensor:
    """Inverted lists of FAISS, as many as ours and 8 of them looked into."""
    import faiss

    index: Any = faiss.index_factory(
        x.size(1), f"IVF{max(1, x.size(0) // LIST_LENGTH)},Flat", faiss.METRIC_INNER_PRODUCT
    )
    index.cp.niter = 5
    index.nprobe = 8
    vectors = x.cpu().numpy()
    index.train(vectors)
    index.add(vectors)
    return torch.from_numpy(index.search(vectors, k + 1)[1])


def without_self(found: Tensor, k: int, device: torch.device) -> KNNGraph:
    """Search results as a graph."""
    own = torch.arange(len(found))[:, None]
    order = torch.sort((found == own).int(), dim=1, stable=True).indices[:, :k]
    index = found.gather(1, order).to(device)
    return KNNGraph(index, torch.zeros_like(index, dtype=torch.float32))


def race_changes(x: Tensor, k: int, rounds: int) -> tuple[list[Result], dict]:
    """Appending and removing a hundredth, beside building anew."""
    part = max(1, x.size(0) // 100)
    base = knn_graph(x[:-part], k)
    whole = knn_graph(x, k)
    keep = torch.ones(x.size(0), dtype=torch.bool, device=x.device)
    keep[torch.randperm(x.size(0), generator=torch.Generator().manual_seed(0))[:part]] = False
    kept = x[keep]
    contenders = [
        Contender("ours, append 1%", lambda: append_knn(base, x[:-part], x[-part:], k)),
        Contender("ours, remove 1%", lambda: remove_knn(whole, kept, keep, k)),
        Contender("ours, build", lambda: knn_graph(x, k)),
    ]
    results = race(contenders, rounds, x.device)
    shrunk = knn_graph(kept, k)
    agreement = {
        "append equals build": bool(torch.equal(results[0].answer.index, whole.index)),
        "remove equals build": bool(torch.equal(results[1].answer.index, shrunk.index)),
    }
    return results, {"agreement": agreement}
