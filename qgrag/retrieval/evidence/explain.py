"""Evidence of a retrieval result as a person reads it: lines of text, triples and paths with arrows."""

from collections.abc import Iterator, Sequence
from functools import singledispatch

from qgrag.retrieval.evidence.base import Evidence, GraphEvidence
from qgrag.retrieval.evidence.records import DualEvidence, EnsembleEvidence, FGEvidence, QMKGFEvidence
from qgrag.retrieval.evidence.text import shortened
from qgrag.retrieval.linking.link import Link
from qgrag.retrieval.results import Hit, RetrievalResult

MAX_ITEMS = 12


def explain(result: RetrievalResult, *, max_items: int = MAX_ITEMS) -> str:
    """What a retriever found for a query, and why.

    Args:
        result: of any retriever.
        max_items: lines of a list shown; how many more there are is said.
    """
    lines = [f"{result.query}  ({result.retriever})", *explain_evidence(result.evidence, max_items)]
    for rank, hit in enumerate(result.hits, start=1):
        lines += ["", *explain_hit(hit, rank, max_items)]
    if not result.hits:
        lines.append("no chunk found")
    return "\n".join(lines)


def explain_evidence(evidence: Evidence, max_items: int = MAX_ITEMS) -> list[str]:
    """Lines on the query as a whole: its entities, and what its retriever made of them.

    A record of another package shows its own `line`.
    """
    lines = []
    if evidence.fallback:
        lines.append(f"fallback: {evidence.fallback}")
    if isinstance(evidence, GraphEvidence) and evidence.links:
        lines.append("entities: " + "; ".join(map(link_text, evidence.links)))
    return lines + list(_findings(evidence, max_items))


def explain_hit(hit: Hit, rank: int, max_items: int = MAX_ITEMS) -> list[str]:
    """A hit with its source, the beginning of its text and what brought it."""
    names = ", ".join(hit.document_ids)
    title = f"  {hit.title}" if hit.title else ""
    return [
        f"{rank}. {names}, characters {hit.start}-{hit.end}, score {hit.score:.3f}{title}",
        f"   {shortened(hit.text)}",
        *_shown([f"   {item.line}" for item in hit.evidence], max_items, "   "),
    ]


def link_text(link: Link) -> str:
    """'Agni' -> Agni (2004 film) [alias 0.90]."""
    return f"'{link.surface}' -> {link.name} [{link.how} {link.score:.2f}]"


@singledispatch
def _findings(evidence: Evidence, max_items: int) -> Iterator[str]:
    """Lines on what a method found, beside its links."""
    if evidence.line:
        yield evidence.line


@_findings.register
def _(evidence: EnsembleEvidence, max_items: int) -> Iterator[str]:
    for member, own in evidence.members.items():
        yield f"{member}:"
        yield from (f"  {line}" for line in explain_evidence(own, max_items))


@_findings.register
def _(evidence: DualEvidence, max_items: int) -> Iterator[str]:
    yield "nodes: " + "; ".join(f"{n.name} [{n.kind} {n.weight:.2f}]" for n in evidence.nodes)
    triples = sorted(evidence.triples, key=lambda triple: -triple.similarity)
    yield f"triples around them: {len(triples)}"
    yield from _shown([f"  {triple.line}" for triple in triples], max_items, "  ")
    yield f"shortest paths between them: {len(evidence.paths)}"
    yield from _shown([f"  {path.line}" for path in evidence.paths], max_items, "  ")


@_findings.register
def _(evidence: FGEvidence, max_items: int) -> Iterator[str]:
    for entity in evidence.entities:
        yield f"{entity.entity}: {entity.reached} entities reached"
        for context, names in (("weak", entity.weak), ("strong", entity.strong)):
            more = f" and {len(names) - max_items} more" if len(names) > max_items else ""
            yield f"  {context} context: {', '.join(names[:max_items]) or 'none'}{more}"
        yield from (f"  asks: {question}" for question in entity.questions[:max_items])
        if entity.summary:
            yield f"  summary: {shortened(entity.summary, 600)}"


@_findings.register
def _(evidence: QMKGFEvidence, max_items: int) -> Iterator[str]:
    yield f"subgraphs, scored by {evidence.scorer}:"
    for subgraph in evidence.subgraphs:
        score = "empty" if subgraph.score is None else f"{subgraph.score:.3f}"
        mark = "  <- winner" if subgraph.kind == evidence.winner else ""
        names = ", ".join(subgraph.nodes[:max_items])
        yield f"  {subgraph.kind}: {score}, {len(subgraph.triples)} triples; {names}{mark}"
    added = sum(triple.added for triple in evidence.fused)
    yield f"fused: {len(evidence.fused)} triples, {added} of them from the other subgraphs"
    lines = [f"  {triple.line}{'  (added)' if triple.added else ''}" for triple in evidence.fused]
    yield from _shown(lines, max_items, "  ")


def _shown(lines: Sequence[str], limit: int, indent: str) -> list[str]:
    more = [f"{indent}… and {len(lines) - limit} more"] if len(lines) > limit else []
    return [*lines[:limit], *more]
