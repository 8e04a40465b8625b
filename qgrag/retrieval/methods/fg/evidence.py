"""Evidence of FG-RAG: weak and strong entities, questions and summaries, and the descriptions behind each chunk."""

from collections.abc import Sequence

from torch import Tensor

from qgrag.index.knowledge.build import KnowledgeGraph
from qgrag.index.reader import Index
from qgrag.retrieval.evidence.items import DescriptionItem
from qgrag.retrieval.evidence.records import EntityContext, FGEvidence
from qgrag.retrieval.methods.fg.context import Context, Told
from qgrag.retrieval.steps.linked_queries import LinkedQueries


def fg_evidence(
    graph: KnowledgeGraph,
    index: Index,
    linked: LinkedQueries,
    context: Context,
    told: Told,
    questions: Sequence[Sequence[str]],
    summaries: Sequence[str],
    chunks: Tensor,
) -> tuple[list[FGEvidence], list[dict[int, list[DescriptionItem]]]]:
    """Evidence of B queries and of their chunks.

    Args:
        graph: of the index.
        index: its chunks are named by id.
        linked: entities of each query.
        context: of P (query, entity) pairs.
        told: descriptions of the pairs.
        questions: of each pair.
        summaries: of each pair.
        chunks: int64 [B, K], padded with -1.
    """
    entities: list[list[EntityContext]] = [[] for _ in linked.links]
    weak, strong = context.weak.to_lists(), context.strong.to_lists()
    reached = context.pair.bincount(minlength=len(context.query)).tolist()
    for pair, (query, entity) in enumerate(zip(context.query.tolist(), context.entity.tolist(), strict=True)):
        entities[query].append(
            EntityContext(
                graph.names[entity],
                tuple(graph.names[node] for node in weak[pair]),
                tuple(graph.names[node] for node in strong[pair]),
                reached[pair],
                tuple(questions[pair]),
                summaries[pair],
                entity_row=entity,
                weak_rows=tuple(weak[pair]),
                strong_rows=tuple(strong[pair]),
            )
        )
    brought: list[dict[int, list[DescriptionItem]]] = [
        {row: [] for row in rows if row >= 0} for rows in chunks.tolist()
    ]
    columns = (context.entity[told.pair], told.query, told.node, told.chunk, told.weight, told.relevance)
    for (entity, query, node, chunk, weight, relevance), text in zip(
        zip(*(column.tolist() for column in columns), strict=True), told.texts, strict=True
    ):
        if chunk in brought[query]:
            brought[query][chunk].append(
                DescriptionItem(
                    graph.names[entity],
                    graph.names[node],
                    text,
                    weight,
                    relevance,
                    index.chunks[chunk].id,
                    entity_row=entity,
                    of_row=node,
                    chunk_row=chunk,
                )
            )
    for row in brought:
        for items in row.values():
            items.sort(key=lambda item: (-item.weight * max(item.relevance, 0.0), item.text))
    evidence = [FGEvidence(tuple(links), tuple(row)) for links, row in zip(linked.links, entities, strict=True)]
    return evidence, brought
