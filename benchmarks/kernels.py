"""The graph kernels beside their peers, on the same graphs, in one process.

    python benchmarks/kernels.py                                   # graphs of 10 and 100 thousand nodes, about 20 min
    python benchmarks/kernels.py --cases ppr paths --nodes 10000   # two kernels on a small graph, about a minute
    python benchmarks/kernels.py --nodes 1000000 --batch 256       # the large graph, about half an hour
    python benchmarks/kernels.py --quick --device cuda             # what gpu.sh runs

Every case times ours and the peers that are installed in turn, several rounds, each round from another start; the
ratio is the median of the rounds' ratios and its range is printed with it. The first run of each contender warms it
up and is watched for its memory peak instead. Answers are compared in the same run. A peer that is not installed,
or would take minutes an answer on that size, is left out.

Cases:
  ppr      personalised PageRank, restart over 5 nodes, damping 0.85, L1 change below 1e-6
  local    its local form, restart over 5 nodes, at --epsilon
  knn      exact kNN graph, 384 dimensions, k = 10, clustered vectors
  ivf      approximate kNN graph of the same vectors
  changes  appending and removing a hundredth of them
  expand   two hops from 15 seeds over a table of three neighbours a node
  paths    shortest paths of at most 4 hops among 6 seeds
  subgraph edges among the nodes within a hop of three seeds
  real     all of these on the mention graph and the vectors of the 2Wiki corpus (needs DATA, see QGRAG_DATA)

Run it on a machine that has nothing else to do. Where that cannot be had, OMP_WAIT_POLICY=PASSIVE makes threads that
wait give their core away: otherwise whatever else runs slows the many-threaded contenders, ours first, many times
over; short calls then take several times as long. CPU ms sum over the threads of this process.

Writes kernels.json, kernels.md and kernels-growth.png to --out after every case. With --keep a run adds to what is
there, so that the cases can be run one at a time.
"""

import argparse
import os
import platform
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import torch
from _graphs import Graph, clustered_vectors, preferential
from _neighbours import race_approximate, race_changes, race_exact
from _pagerank import race_local, race_pagerank
from _report import Row, load, replaced, rows_of, save, table
from _timing import machine_limits
from _walks import race_expansion, race_paths, race_subgraph

CASES = ("ppr", "local", "knn", "ivf", "changes", "expand", "paths", "subgraph", "real")
GRAPH_CASES = {"ppr", "local", "paths", "subgraph"}
VECTOR_CASES = {"knn", "ivf", "changes"}
DIMENSIONS, NEIGHBOURS = 384, 10


def main() -> None:
    """Runs the chosen cases, smallest graphs first."""
    args = parse(sys.argv[1:])
    torch.set_num_threads(args.threads)
    device = torch.device(args.device)
    limits = machine_limits(device)
    machine = describe(args, limits)
    setting = {
        "command": "python benchmarks/kernels.py " + " ".join(sys.argv[1:]),
        "omp_wait_policy": os.environ.get("OMP_WAIT_POLICY", "as the library has it"),
    }
    print("\n".join(f"{key}: {value}" for key, value in (setting | machine).items()), flush=True)
    rows = load(args.out) if args.keep else []
    with tempfile.TemporaryDirectory() as folder:
        for found in run(args, device, limits, folder):
            print(table(found), flush=True)
            rows = replaced(rows, [replace(row, **setting) for row in found])
            save(args.out, machine, rows)
    print(f"wrote {args.out / 'kernels.json'}, kernels.md and kernels-growth.png there")


def parse(argv: list[str]) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", nargs="+", choices=CASES, default=list(CASES), metavar="CASE", help="default: all")
    parser.add_argument("--nodes", nargs="+", type=int, default=[10_000, 100_000], help="graph sizes, 10 edges a node")
    parser.add_argument("--vectors", nargs="+", type=int, help="vectors for knn, ivf, changes; default: as --nodes")
    parser.add_argument("--table-nodes", nargs="+", type=int, help="nodes for expand; default: as --nodes")
    parser.add_argument("--batch", nargs="+", type=int, default=[1, 32, 256], help="queries a batch")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--epsilon", nargs="+", type=float, default=[2e-5, 1.2e-5], help="for local")
    parser.add_argument("--probes", nargs="+", type=int, default=[8], help="for ivf")
    parser.add_argument("--threads", type=int, default=2, help="of torch on CPU")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--quick", action="store_true", help="fewer answers from slow peers, no second process")
    parser.add_argument("--keep", action="store_true", help="keep what --out holds of other cases, graphs and batches")
    parser.add_argument("--out", type=Path, default=Path("runs/kernels"), help="folder for the results")
    args = parser.parse_args(argv)
    if args.rounds < 1 or min(args.nodes + args.batch) < 1:
        parser.error("--rounds, --nodes and --batch must be at least 1")
    return args


def describe(args: argparse.Namespace, limits: dict[str, float]) -> dict[str, object]:
    """What the figures of this run were taken on."""
    name = (
        torch.cuda.get_device_name(0) if args.device.startswith("cuda") else platform.processor() or platform.machine()
    )
    return {
        "device": name,
        "threads": args.threads,
        "torch": torch.__version__,
        "load_average_at_start": os.getloadavg()[0],
        **{key: round(value, 1) for key, value in limits.items()},
    }


def run(args: argparse.Namespace, device: torch.device, limits: dict[str, float], folder: str) -> Iterator[list[Row]]:
    """The rows of each race."""
    cases = set(args.cases)
    for nodes in sorted(args.nodes):
        if cases & GRAPH_CASES:
            yield from on_graph(preferential(nodes, 10, device), cases, args, limits, folder)
    for num in sorted(args.vectors or args.nodes):
        if cases & VECTOR_CASES:
            yield from on_vectors(clustered_vectors(num, DIMENSIONS, device), "clusters", cases, args, limits)
    for nodes in sorted(args.table_nodes or args.nodes) if "expand" in cases else ():
        for batch in args.batch:
            results, extra = race_expansion(nodes, batch, args.rounds, device, peers=not args.quick or nodes < 200_000)
            gathers = extra["nodes_met"] * results[0].per_second / 1e6 / limits["gather1_mrows_s"]
            yield rows_of("expand", f"table-{nodes}", nodes, batch, results, extra, gathers)
    if "real" in cases:
        yield from on_wiki(args, device, limits, folder)


def on_graph(
    graph: Graph, cases: set[str], args: argparse.Namespace, limits: dict[str, float], folder: str
) -> Iterator[list[Row]]:
    """Kernels over edges."""
    for batch in args.batch:
        started = time.perf_counter()
        if "ppr" in cases:
            results, extra = race_pagerank(graph, batch, args.rounds, folder, quick=args.quick)
            limit = limits["gather32_mrows_s" if graph.num_nodes < 300_000 else "gather32_1m_mrows_s"]
            share = extra["gathered_rows_of_32"] * results[0].per_second / 1e6 / limit
            yield rows_of("ppr", graph.name, graph.num_nodes, batch, results, extra, share)
        for epsilon in args.epsilon if "local" in cases else ():
            results, extra = race_local(graph, batch, args.rounds, epsilon, quick=args.quick)
            share = extra["slots_of_pushed_nodes"] * results[0].per_second / 1e6 / limits["gather1_mrows_s"]
            yield rows_of(f"local {epsilon:g}", graph.name, graph.num_nodes, batch, results, extra, share)
        if "paths" in cases:
            results, extra = race_paths(graph, batch, args.rounds, quick=args.quick)
            share = extra["two_hop_slots"] * results[0].per_second / 1e6 / limits["gather1_mrows_s"]
            yield rows_of("paths", graph.name, graph.num_nodes, batch, results, extra, share)
        if "subgraph" in cases:
            results, extra = race_subgraph(graph, batch, args.rounds)
            yield rows_of("subgraph", graph.name, graph.num_nodes, batch, results, extra, None)
        print(f"{graph.name}, batch {batch}: {time.perf_counter() - started:.0f} s", file=sys.stderr, flush=True)


def on_vectors(
    x: torch.Tensor, name: str, cases: set[str], args: argparse.Namespace, limits: dict[str, float]
) -> Iterator[list[Row]]:
    """Kernels over vectors; a batch is the whole graph."""
    graph, n = f"{name}-{x.size(0)}", x.size(0)
    if "knn" in cases:
        results, extra = race_exact(x, NEIGHBOURS, args.rounds)
        share = extra["gemm_flop"] / 1e9 * results[0].per_second / limits["gemm_bf16_gflop_s"]
        yield rows_of("knn", graph, n, 1, results, extra, share)
    for probes in args.probes if "ivf" in cases else ():
        results, extra = race_approximate(x, NEIGHBOURS, args.rounds, probes)
        yield rows_of("ivf", graph, n, 1, results, extra, None)
    if "changes" in cases:
        results, extra = race_changes(x, NEIGHBOURS, args.rounds)
        yield rows_of("changes", graph, n, 1, results, extra, None)


def on_wiki(
    args: argparse.Namespace, device: torch.device, limits: dict[str, float], folder: str
) -> Iterator[list[Row]]:
    """All kernels on the 2Wiki corpus."""
    from _wiki import mention_graph, passage_vectors, passages

    try:
        corpus = passages()
    except FileNotFoundError as error:
        print(f"case real left out: {error}; set QGRAG_DATA to the data folder", file=sys.stderr)
        return
    yield from on_graph(mention_graph(corpus, device), GRAPH_CASES, args, limits, folder)
    yield from on_vectors(passage_vectors(corpus, device), "2wiki-passages", VECTOR_CASES, args, limits)


if __name__ == "__main__":
    main()
