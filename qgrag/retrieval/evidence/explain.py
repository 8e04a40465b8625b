"""Evidence of a retrieval result as a person reads it: lines of text, triples and paths with arrows."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from qgrag.retrieval.results import Hit, RetrievalResult

MAX_ITEMS = 12
MAX_CHARACTERS = 240


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


def explain_evidence(evidence: Mapping[str, Any], max_items: int = MAX_ITEMS) -> list[str]:
    """Lines on the query as a whole: its entities, and what its retriever made of them."""
    lines = []
    if "fallback" in evidence:
        lines.append(f"fallback: {evidence['fallback']}")
    if evidence.get("links"):
        lines.append("entities: " + "; ".join(map(link_text, evidence["links"])))
    for member, own in evidence.get("members", {}).items():
        lines += [f"{member}:", *(f"  {line}" for line in explain_evidence(own, max_items))]
    lines += _dual(evidence, max_items)
    lines += _fg(evidence, max_items)
    lines += _qmkgf(evidence, max_items)
    return lines


def explain_hit(hit: Hit, rank: int, max_items: int = MAX_ITEMS) -> list[str]:
    """A hit with its source, the beginning of its text and what brought it."""
    names = ", ".join(hit.document_ids)
    title = f"  {hit.title}" if hit.title else ""
    return [
        f"{rank}. {names}, characters {hit.start}-{hit.end}, score {hit.score:.3f}{title}",
        f"   {shortened(hit.text)}",
        *_shown([f"   {item_text(item)}" for item in hit.evidence], max_items, "   "),
    ]


def item_text(item: Mapping[str, Any]) -> str:
    """One line on an item of a hit's evidence."""
    match item.get("kind"):
        case "triple":
            return triple_text(item)
        case "path":
            return path_text(item["steps"])
        case "question node":
            question = f"{item['question']} {item['answer']}".strip() or item["sentence"]
            return f"{shortened(question)}  [hop {item['hop']}, {item['score']:.3f}]"
        case "description":
            return f"{item['of']}: {shortened(item['text'])}  [{item['weight']:.2f} x {item['relevance']:.2f}]"
        case "search":
            joined = f"query + {item['joined_with']} '{item['item']}'" if item["joined_with"] else "the query itself"
            return f"found by {joined}"
        case "vote":
            why = "; ".join(map(item_text, item["evidence"][:2]))
            return f"{item['retriever']} ranks it {item['rank']}" + (f": {why}" if why else "")
    return ", ".join(f"{key} {value}" for key, value in item.items() if key != "kind")


def link_text(link: Mapping[str, Any]) -> str:
    """'Agni' -> Agni (2004 film) [alias 0.90]."""
    return f"'{link['surface']}' -> {link['name']} [{link['how']} {link['score']:.2f}]"


def triple_text(triple: Mapping[str, Any]) -> str:
    """A triple with an arrow from its head to its tail, its similarity to the query and its chunks."""
    text = f"{triple['head']} —{triple['relation']}→ {triple['tail']}"
    if "similarity" in triple:
        text += f"  [{triple['similarity']:.2f}]"
    if triple.get("chunks"):
        text += "  in " + ", ".join(triple["chunks"][:3])
    return text


def path_text(steps: Sequence[Mapping[str, Any]]) -> str:
    """A path from its first node to its last, each arrow pointing from its triple's head to its tail."""
    if not steps:
        return ""
    text = str(steps[0]["head"] if steps[0]["forward"] else steps[0]["tail"])
    for step in steps:
        if step["forward"]:
            text += f" —{step['relation']}→ {step['tail']}"
        else:
            text += f" ←{step['relation']}— {step['head']}"
    return text


def shortened(text: str, limit: int = MAX_CHARACTERS) -> str:
    """A text on one line, cut after `limit` characters."""
    line = " ".join(text.split())
    return line if len(line) <= limit else f"{line[:limit]}…"


def _dual(evidence: Mapping[str, Any], max_items: int) -> Iterator[str]:
    if "nodes" not in evidence or not isinstance(evidence["nodes"], list):
        return
    yield "nodes: " + "; ".join(f"{n['name']} [{n['kind']} {n['weight']:.2f}]" for n in evidence["nodes"])
    triples = sorted(evidence["triples"], key=lambda triple: -triple["similarity"])
    yield f"triples around them: {len(triples)}"
    yield from _shown([f"  {triple_text(triple)}" for triple in triples], max_items, "  ")
    yield f"shortest paths between them: {len(evidence['paths'])}"
    yield from _shown([f"  {path_text(path['steps'])}" for path in evidence["paths"]], max_items, "  ")


def _fg(evidence: Mapping[str, Any], max_items: int) -> Iterator[str]:
    for entity in evidence.get("entities", ()):
        yield f"{entity['entity']}: {entity['reached']} entities reached"
        for name in ("weak", "strong"):
            names = entity[name]
            more = f" and {len(names) - max_items} more" if len(names) > max_items else ""
            yield f"  {name} context: {', '.join(names[:max_items]) or 'none'}{more}"
        yield from (f"  asks: {question}" for question in entity["questions"][:max_items])
        if entity["summary"]:
            yield f"  summary: {shortened(entity['summary'], 600)}"


def _qmkgf(evidence: Mapping[str, Any], max_items: int) -> Iterator[str]:
    if "subgraphs" not in evidence:
        return
    yield f"subgraphs, scored by {evidence['scorer']}:"
    for subgraph in evidence["subgraphs"]:
        score = "empty" if subgraph["score"] is None else f"{subgraph['score']:.3f}"
        mark = "  <- winner" if subgraph["kind"] == evidence["winner"] else ""
        names = ", ".join(subgraph["nodes"][:max_items])
        yield f"  {subgraph['kind']}: {score}, {len(subgraph['triples'])} triples; {names}{mark}"
    added = sum(triple["added"] for triple in evidence["fused"])
    yield f"fused: {len(evidence['fused'])} triples, {added} of them from the other subgraphs"
    lines = [f"  {triple_text(t)}{'  (added)' if t['added'] else ''}" for t in evidence["fused"]]
    yield from _shown(lines, max_items, "  ")


def _shown(lines: Sequence[str], limit: int, indent: str) -> list[str]:
    more = [f"{indent}… and {len(lines) - limit} more"] if len(lines) > limit else []
    return [*lines[:limit], *more]
