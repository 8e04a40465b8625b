"""Evidence of FG-RAG: weak and strong entities, questions and summaries, and the descriptions behind each chunk."""

from collections.abc import Sequence
from typing import Any

from torch import Tensor

from qgrag.index.knowledge.build import KnowledgeGraph
from qgrag.index.reader import Index
from qgrag.retrieval.graph_steps import LinkedQueries
from qgrag.retrieval.methods.fg.context import Context, Told


def fg_evidence(
    graph: KnowledgeGraph,
    index: Index,
    linked: LinkedQueries,
    context: Context,
    told: Told,
    questions: Sequence[Sequence[str]],
    summaries: Sequence[str],
    chunks: Tensor,
) -> tuple[list[dict[str, Any]], list[dict[int, list[dict[str, Any]]]]]:
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
    evidence: list[dict[str, Any]] = [
        {"links": [link.to_dict() for link in links], "entities": []} for links in linked.links
    ]
    weak, strong = context.weak.to_lists(), context.strong.to_lists()
    reached = context.pair.bincount(minlength=len(context.query)).tolist()
    for pair, (query, entity) in enumerate(zip(context.query.tolist(), context.entity.tolist(), strict=True)):
        evidence[query]["entities"].append(
            {
                "entity": graph.names[entity],
                "weak": [graph.names[node] for node in weak[pair]],
                "strong": [graph.names[node] for node in strong[pair]],
                "reached": reached[pair],
                "questions": list(questions[pair]),
                "summary": summaries[pair],
            }
        )
    brought: list[dict[int, list[dict[str, Any]]]] = [{row: [] for row in rows if row >= 0} for rows in chunks.tolist()]
    columns = (told.pair, told.query, told.node, told.chunk, told.weight, told.relevance)
    for (pair, query, node, chunk, weight, relevance), text in zip(
        zip(*(column.tolist() for column in columns), strict=True), told.texts, strict=True
    ):
        if chunk in brought[query]:
            brought[query][chunk].append(
                {
                    "kind": "description",
                    "entity": graph.names[int(context.entity[pair])],
                    "of": graph.names[node],
                    "text": text,
                    "weight": weight,
                    "relevance": relevance,
                    "chunk": index.chunks[chunk].id,
                }
            )
    for row in brought:
        for items in row.values():
            items.sort(key=lambda item: (-item["weight"] * max(item["relevance"], 0.0), item["text"]))
    return evidence, brought
