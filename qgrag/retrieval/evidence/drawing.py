"""The picture of a result's evidence graph: names in boxes, arrows between them, nothing on top of anything else."""

import io
import re
import unicodedata
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from qgrag.retrieval.evidence.evidence_graph import Edge, EdgeKind, NodeKind, evidence_edges, node_kinds
from qgrag.retrieval.evidence.text import shortened
from qgrag.retrieval.results import RetrievalResult

MAX_EDGES = 24
LABEL_CHARACTERS, QUESTION_CHARACTERS = 30, 54
NODE_SIZE, LABEL_SIZE = 9.0, 7.5
GAP = 12.0
WIDTH, HEIGHT, HEIGHT_A_NODE = 820.0, 200.0, 14.0
PLACES = (0.5, 0.42, 0.58, 0.34, 0.66, 0.27, 0.73)
BEND = 0.16


class Style(NamedTuple):
    """How a kind of node or arrow is drawn, and what the legend calls it."""

    meaning: str
    colour: str
    fill: str = "none"
    width: float = 1.0
    dashes: str = "-"


NODES: dict[NodeKind, Style] = {
    "query": Style("named in the query", "#c8501e", "#fbe3d8"),
    "implied": Style("implied by the query", "#2a6f97", "#dcebf4"),
    "question": Style("question or sentence", "#a07d1a", "#faf2d7"),
    "document": Style("hit, by rank", "#4f7d31", "#e6f1dc"),
    "other": Style("other entity", "#8d99ae", "#ffffff"),
}
EDGES: dict[EdgeKind, Style] = {
    "path": Style("shortest path", "#1d3557", width=2.2),
    "fused": Style("fused triple", "#1d3557", width=1.8),
    "triple": Style("triple", "#7b8794", width=1.0),
    "left out": Style("triple of a subgraph, not fused", "#c3cad4", width=0.9),
    "weak": Style("weak context", "#2a6f97", width=1.5),
    "strong": Style("strong context", "#9aa5b1", width=1.0, dashes=":"),
    "source": Style("brings the hit", "#4f7d31", width=1.1, dashes="--"),
}


def draw_svg(result: RetrievalResult, *, max_edges: int = MAX_EDGES) -> str:
    """The evidence graph as an SVG element; empty where the evidence holds no arrow.

    Laid out by networkx, drawn by matplotlib; the same result gives the same picture. No script, no network.
    """
    edges = evidence_edges(result)[:max_edges]
    if not edges:
        return ""
    import matplotlib
    from matplotlib.figure import Figure

    kinds = node_kinds(result)
    nodes = list(dict.fromkeys(end for edge in edges for end in (edge.head, edge.tail)))
    lengths = (QUESTION_CHARACTERS if kinds.get(node) == "question" else LABEL_CHARACTERS for node in nodes)
    texts = [shortened(node, length) for node, length in zip(nodes, lengths, strict=True)]
    sizes = np.array([_text_size(text, NODE_SIZE) for text in texts]) + 8
    centres = _apart(_layout(nodes, edges), sizes + GAP)
    centres -= (centres - sizes / 2).min(0) - GAP
    width, height = (centres + sizes / 2).max(0) + GAP
    figure = Figure(figsize=(width / 72, height / 72))
    axes = figure.add_axes((0, 0, 1, 1), xlim=(0, width), ylim=(0, height))
    axes.axis("off")
    place, size = dict(zip(nodes, centres, strict=True)), dict(zip(nodes, sizes, strict=True))
    boxes = {
        node: _box(axes, place[node], size[node], NODES[kinds.get(node, "other")], text)
        for node, text in zip(nodes, texts, strict=True)
    }
    taken = [(place[node], size[node]) for node in nodes]
    for (head, tail), group in _by_ends(edges).items():
        bend = BEND if (tail, head) in _by_ends(edges) else 0.0
        _arrow(axes, boxes[head], boxes[tail], place[head], place[tail], EDGES[group[0].kind], bend)
        label = shortened(", ".join(filter(None, (edge.label for edge in group))), LABEL_CHARACTERS)
        if label:
            _write(axes, label, place[head], place[tail], bend, taken)
    buffer = io.StringIO()
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "qgrag"}):
        figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None}, transparent=True)
    return re.sub(r"^.*?(?=<svg)", "", buffer.getvalue(), flags=re.S)


def legend(result: RetrievalResult, *, max_edges: int = MAX_EDGES) -> tuple[list[Style], list[Style]]:
    """Styles of the nodes and of the arrows that `draw_svg` draws for a result."""
    edges, kinds = evidence_edges(result)[:max_edges], node_kinds(result)
    found = {kinds.get(end, "other") for edge in edges for end in (edge.head, edge.tail)}
    drawn = {edge.kind for edge in edges}
    return [NODES[kind] for kind in NODES if kind in found], [EDGES[kind] for kind in EDGES if kind in drawn]


def _by_ends(edges: Sequence[Edge]) -> dict[tuple[str, str], list[Edge]]:
    groups: dict[tuple[str, str], list[Edge]] = {}
    for edge in edges:
        groups.setdefault((edge.head, edge.tail), []).append(edge)
    return groups


def _layout(nodes: Sequence[str], edges: Sequence[Edge]) -> np.ndarray:
    """Centres in points by the springs of Kamada and Kawai (1989), one drawing for all components; [n, 2]."""
    import networkx as nx

    graph = nx.Graph()
    graph.add_nodes_from(nodes)
    graph.add_edges_from((edge.head, edge.tail) for edge in edges)
    first, *others = (min(part) for part in sorted(nx.connected_components(graph), key=lambda p: (-len(p), min(p))))
    graph.add_edges_from((first, other) for other in others)
    places = nx.kamada_kawai_layout(graph)
    centres = np.array([places[node] for node in nodes])
    spread = np.ptp(centres, axis=0)
    canvas = (WIDTH, HEIGHT + HEIGHT_A_NODE * len(nodes))
    return (centres - centres.min(0)) / np.where(spread > 1e-6, spread, 1.0) * canvas


def _apart(centres: np.ndarray, sizes: np.ndarray, rounds: int = 300) -> np.ndarray:
    """Centres moved until no two boxes overlap: each pair along the axis on which it overlaps less; O(rounds n^2)."""
    centres = centres.copy()
    for _ in range(rounds):
        offset = centres[:, None] - centres[None]
        overlap = (sizes[:, None] + sizes[None]) / 2 - np.abs(offset)
        hit = (overlap > 0).all(2)
        np.fill_diagonal(hit, val=False)
        if not hit.any():
            break
        axis = overlap.argmin(2)
        order = np.sign(np.arange(len(centres))[:, None] - np.arange(len(centres))[None])
        for dimension in (0, 1):
            side = np.where(offset[..., dimension] == 0, order, np.sign(offset[..., dimension]))
            push = np.where(hit & (axis == dimension), side * (overlap[..., dimension] / 2 + 0.1), 0)
            centres[:, dimension] += push.sum(1)
    return centres


def _text_size(text: str, size: float) -> tuple[float, float]:
    """Width and height of a text in points, as most sans-serif fonts have it."""
    ems = sum(1.0 if unicodedata.east_asian_width(character) in "WF" else 0.6 for character in text)
    return size * ems, 1.25 * size


def _box(axes: Any, centre: np.ndarray, size: np.ndarray, style: Style, text: str) -> Any:
    from matplotlib.patches import FancyBboxPatch

    corner, (width, height) = tuple(centre - size / 2), size
    shape = "round,pad=0,rounding_size=4"
    box = FancyBboxPatch(corner, width, height, shape, facecolor=style.fill, edgecolor=style.colour, zorder=3)
    axes.add_patch(box)
    axes.text(*centre, text, fontsize=NODE_SIZE, color="#212529", ha="center", va="center", parse_math=False, zorder=4)
    return box


def _arrow(axes: Any, one: Any, other: Any, start: np.ndarray, end: np.ndarray, style: Style, bend: float) -> None:
    from matplotlib.patches import FancyArrowPatch

    axes.add_patch(
        FancyArrowPatch(
            tuple(start),
            tuple(end),
            patchA=one,
            patchB=other,
            shrinkA=1,
            shrinkB=2,
            arrowstyle="-|>",
            mutation_scale=11,
            connectionstyle=f"arc3,rad={bend}",
            color=style.colour,
            linewidth=style.width,
            linestyle=style.dashes,
            zorder=1,
        )
    )


def _write(
    axes: Any,
    label: str,
    start: np.ndarray,
    end: np.ndarray,
    bend: float,
    taken: list[tuple[np.ndarray, np.ndarray]],
) -> None:
    """Write a label on its arrow, where it covers least of what is `taken`, and take that place."""
    size = np.array(_text_size(label, LABEL_SIZE)) + 2
    along = end - start
    across = np.array([along[1], -along[0]]) * bend
    spots = [start + t * along + 2 * t * (1 - t) * across for t in PLACES]
    spot = min(spots, key=lambda centre: sum(_covered(centre, size, *other) for other in taken))
    taken.append((spot, size))
    axes.text(
        *spot,
        label,
        fontsize=LABEL_SIZE,
        color="#495057",
        ha="center",
        va="center",
        parse_math=False,
        zorder=2,
        bbox={"facecolor": "white", "edgecolor": "none", "pad": 1.0},
    )


def _covered(centre: np.ndarray, size: np.ndarray, other: np.ndarray, other_size: np.ndarray) -> float:
    """Area that two boxes share."""
    overlap = (size + other_size) / 2 - np.abs(centre - other)
    return float(np.prod(overlap.clip(min=0)))
