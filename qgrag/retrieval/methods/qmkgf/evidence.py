"""Evidence of QMKGF: the subgraphs with their scores, what was fused, and which expanded query brought which chunk."""

from collections.abc import Sequence

from torch import Tensor

from qgrag.index.knowledge.build import KnowledgeGraph
from qgrag.retrieval.evidence.items import SearchItem
from qgrag.retrieval.evidence.named_triples import extended, named_triples
from qgrag.retrieval.evidence.records import FusedTriple, QMKGFEvidence, Subgraph
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
) -> tuple[list[QMKGFEvidence], list[dict[int, list[SearchItem]]]]:
    """Evidence of B queries and of their chunks.

    Args:
        graph: of the index.
        links: entities of each query.
        subgraphs: three per query.
        fusion: of each query.
        expansions: searches made.
        found: query, chunk and best expansion (-1: the query itself) of each chunk found, int64 [P].
        chunks: int64 [B, K], padded with -1.
        scorer: what scored the subgraphs.
    """
    nodes, ptr, triples = subgraphs.nodes.to_lists(), subgraphs.ptr.tolist(), subgraphs.triples.tolist()
    fused, added = fusion.triples.to_lists(), fusion.added.tolist()
    similarity, offset = fusion.similarity.tolist(), fusion.triples.ptr.tolist()
    named = named_triples(graph, subgraphs.triples)
    evidence = []
    for number, row in enumerate(links):
        winner = int(fusion.winner[number])
        shown = [
            Subgraph(
                kind,
                _finite(fusion.scores[number, k].item()),
                tuple(graph.names[node] for node in nodes[owner]),
                tuple(named[triple] for triple in triples[ptr[owner] : ptr[owner + 1]]),
                node_rows=tuple(nodes[owner]),
            )
            for k, kind in enumerate(KINDS)
            for owner in (number * len(KINDS) + k,)
        ]
        places = enumerate(fused[number], start=offset[number])
        evidence.append(
            QMKGFEvidence(
                tuple(row),
                scorer,
                tuple(shown),
                KINDS[winner] if winner >= 0 else None,
                fusion.threshold[number].item(),
                tuple(extended(named[t], FusedTriple, similarity=similarity[p], added=added[p]) for p, t in places),
            )
        )
    wanted = [set(row) for row in chunks.tolist()]
    brought: list[dict[int, list[SearchItem]]] = [{} for _ in links]
    for query, chunk, source in zip(*(column.tolist() for column in found), strict=True):
        if chunk in wanted[query]:
            brought[query][chunk] = [expansions.items[source] if source >= 0 else SearchItem("", "")]
    return evidence, brought


def _finite(score: float) -> float | None:
    return None if score == float("-inf") else score
