"""Evidence of QMKGF: the subgraphs with their scores, what was fused, and which expanded query brought which chunk."""

from collections.abc import Sequence
from typing import Any

from torch import Tensor

from qgrag.index.knowledge.build import KnowledgeGraph
from qgrag.retrieval.evidence.triple_items import triple_items
from qgrag.retrieval.linking.link import Link
from qgrag.retrieval.methods.qmkgf.expansion import Expansions
from qgrag.retrieval.methods.qmkgf.fusion import Fusion
from qgrag.retrieval.methods.qmkgf.subgraphs import KINDS, Subgraphs


def qmkgf_evidence(
    graph: KnowledgeGraph,
    links: Sequence[Sequence[Link]],
    subgraphs: Subgraphs,
    fusion: Fusion,
    expansions: Expansions,
    found: tuple[Tensor, Tensor, Tensor],
    chunks: Tensor,
    scorer: str,
) -> tuple[list[dict[str, Any]], list[dict[int, list[dict[str, Any]]]]]:
    """Evidence of B queries and of their chunks.

    Args:
        graph: of the index.
        links: entities of each query.
        subgraphs: three a query.
        fusion: of each query.
        expansions: searches made.
        found: query, chunk and best expansion (-1: the query itself) of each chunk found, int64 [P].
        chunks: int64 [B, K], padded with -1.
        scorer: what scored the subgraphs.
    """
    nodes, ptr, triples = subgraphs.nodes.to_lists(), subgraphs.ptr.tolist(), subgraphs.triples.tolist()
    fused, added = fusion.triples.to_lists(), fusion.added.tolist()
    similarity, offset = fusion.similarity.tolist(), fusion.triples.ptr.tolist()
    items = {row: item.named() for row, item in triple_items(graph, subgraphs.triples).items()}
    evidence = []
    for number, row in enumerate(links):
        winner = int(fusion.winner[number])
        shown = []
        for k, kind in enumerate(KINDS):
            row_of = number * len(KINDS) + k
            held = [items[triple] for triple in triples[ptr[row_of] : ptr[row_of + 1]]]
            names = [graph.names[node] for node in nodes[row_of]]
            score = _finite(fusion.scores[number, k].item())
            shown.append({"kind": kind, "score": score, "nodes": names, "triples": held})
        evidence.append(
            {
                "links": [link.to_dict() for link in row],
                "scorer": scorer,
                "subgraphs": shown,
                "winner": KINDS[winner] if winner >= 0 else None,
                "threshold": fusion.threshold[number].item(),
                "fused": [
                    {
                        **items[t],
                        "similarity": similarity[offset[number] + i],
                        "added": added[offset[number] + i],
                    }
                    for i, t in enumerate(fused[number])
                ],
            }
        )
    wanted = [set(row) for row in chunks.tolist()]
    brought: list[dict[int, list[dict[str, Any]]]] = [{} for _ in links]
    for query, chunk, source in zip(*(column.tolist() for column in found), strict=True):
        if chunk in wanted[query]:
            item: dict[str, str] = {"kind": "search", "joined_with": "", "item": ""}
            if source >= 0:
                item |= {"joined_with": expansions.kinds[source], "item": expansions.items[source]}
                item |= expansions.ends[source]
            brought[query][chunk] = [item]
    return evidence, brought


def _finite(score: float) -> float | None:
    return None if score == float("-inf") else score
