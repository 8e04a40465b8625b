"""The graph in a result's evidence, and its picture."""

import io
import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from qgrag.retrieval.explain import shortened
from qgrag.retrieval.results import RetrievalResult

MAX_EDGES = 40
LABEL_CHARACTERS = 28
LABEL_PLACE = 0.6
COLOURS = {"query": "#c8501e", "implied": "#2a6f97", "other": "#6c757d", "document": "#5b8c3a"}


class Edge(NamedTuple):
    """One arrow: from `head` to `tail`, with a label; `kind` is `path`, `triple`, `context` or `source`."""

    head: str
    label: str
    tail: str
    kind: str


def evidence_edges(evidence: Mapping[str, Any], result: RetrievalResult) -> list[Edge]:
    """The arrows that a result's evidence holds, each once, those that matter most first."""
    edges = [*_graph_edges(evidence), *_source_edges(result)]
    seen: dict[tuple[str, str, str], Edge] = {}
    for edge in edges:
        seen.setdefault(edge[:3], edge)
    return list(seen.values())


def node_kinds(evidence: Mapping[str, Any]) -> dict[str, str]:
    """Which nodes the query names, and which it implies."""
    kinds = {link["name"]: "query" for link in evidence.get("links", ())}
    for node in evidence.get("nodes", ()) if isinstance(evidence.get("nodes"), list) else ():
        kinds.setdefault(node["name"], "query" if node["kind"] == "explicit" else "implied")
    for own in evidence.get("members", {}).values():
        kinds = {**node_kinds(own), **kinds}
    return kinds


def draw_svg(result: RetrievalResult, *, max_edges: int = MAX_EDGES) -> str:
    """The evidence graph as an SVG element; empty where the evidence holds no arrow.

    Laid out by networkx, drawn by matplotlib; the same result gives the same picture. No script, no network.
    """
    edges = evidence_edges(result.evidence, result)[:max_edges]
    if not edges:
        return ""
    import matplotlib
    import networkx as nx
    from matplotlib.figure import Figure

    graph = nx.MultiDiGraph()
    for edge in edges:
        graph.add_edge(edge.head, edge.tail, label=edge.label, kind=edge.kind)
    kinds = node_kinds(result.evidence)
    documents = {edge.tail for edge in edges if edge.kind == "source"}
    places = nx.spring_layout(nx.Graph(graph), seed=0, k=1.6 / max(1, len(graph)) ** 0.5, iterations=120)
    height = min(12.0, 4.0 + 0.22 * len(graph))
    figure = Figure(figsize=(11, height))
    axes = figure.add_axes((0, 0, 1, 1))
    axes.axis("off")
    for edge in edges:
        start, end = places[edge.head], places[edge.tail]
        strong = edge.kind == "path"
        axes.annotate(
            "",
            xy=end,
            xytext=start,
            arrowprops={
                "arrowstyle": "-|>",
                "color": "#1d3557" if strong else "#9aa5b1",
                "lw": 1.8 if strong else 0.9,
                "shrinkA": 9,
                "shrinkB": 9,
                "linestyle": "--" if edge.kind == "source" else "-",
            },
        )
        x, y = start + LABEL_PLACE * (end - start)
        axes.text(
            x,
            y,
            _label(edge.label),
            fontsize=7,
            color="#495057",
            ha="center",
            va="center",
            parse_math=False,
            bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.8},
        )
    for node, place in places.items():
        kind = "document" if node in documents else kinds.get(node, "other")
        axes.plot(place[0], place[1], "o", color=COLOURS[kind], markersize=9 if kind == "query" else 7)
        axes.annotate(
            _label(node),
            place,
            xytext=(6, 3),
            textcoords="offset points",
            fontsize=8.5,
            parse_math=False,
            bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.3, "alpha": 0.8},
        )
    axes.margins(0.12)
    buffer = io.StringIO()
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "qgrag"}):
        figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None}, transparent=True)
    return re.sub(r"^.*?(?=<svg)", "", buffer.getvalue(), flags=re.S)


def _graph_edges(evidence: Mapping[str, Any]) -> Iterator[Edge]:
    for path in evidence.get("paths", ()):
        yield from (Edge(s["head"], s["relation"], s["tail"], "path") for s in path["steps"])
    triples = sorted(evidence.get("triples", ()), key=lambda triple: -triple["similarity"])
    yield from (Edge(t["head"], t["relation"], t["tail"], "triple") for t in triples)
    yield from (Edge(t["head"], t["relation"], t["tail"], "triple") for t in evidence.get("fused", ()))
    for entity in evidence.get("entities", ()):
        for kind in ("weak", "strong"):
            names = (name for name in entity[kind] if name != entity["entity"])
            yield from (Edge(entity["entity"], kind, name, "context") for name in names)
    for own in evidence.get("members", {}).values():
        yield from _graph_edges(own)


def _source_edges(result: RetrievalResult) -> Iterator[Edge]:
    """From question nodes to the documents that they come from."""
    for hit in result.hits:
        for item in hit.evidence:
            if item.get("kind") == "question node":
                yield Edge(shortened(item["question"] or item["sentence"], 60), "from", hit.document_id, "source")


def _label(text: str) -> str:
    return shortened(text, LABEL_CHARACTERS)
