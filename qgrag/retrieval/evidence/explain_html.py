"""Results with their evidence as one self-contained page: no script, nothing from the network."""

from collections.abc import Sequence
from html import escape
from pathlib import Path

from qgrag.files import whole_file
from qgrag.retrieval.evidence.drawing import draw_svg, legend
from qgrag.retrieval.evidence.explain import explain_evidence
from qgrag.retrieval.results import Hit, RetrievalResult

_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 70rem; margin: 2rem auto; padding: 0 1rem; color: #212529; }
h2 { margin: 2.5rem 0 0.5rem; }
.retriever, .source { color: #6c757d; font-size: 0.9em; }
pre { white-space: pre-wrap; background: #f8f9fa; border-radius: 6px; padding: 0.8rem; font-size: 0.9em; }
figure { margin: 1rem 0; border: 1px solid #dee2e6; border-radius: 6px; }
figure svg { max-width: 100%; height: auto; display: block; margin: 0.5rem auto; }
figcaption { display: flex; flex-wrap: wrap; gap: 0.2rem 1.2rem; padding: 0.3rem 0.8rem; font-size: 0.85em; }
.node { display: inline-block; width: 1.4em; height: 0.8em; border: 1px solid; border-radius: 3px; }
.arrow { display: inline-block; width: 1.8em; vertical-align: middle; }
.hit { border-left: 4px solid #2a6f97; padding-left: 0.9rem; margin: 1rem 0; }
.hit p { margin: 0.2rem 0; white-space: pre-wrap; }
li { margin: 0.1rem 0; }
"""
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
_DASHES = {"-": "solid", ":": "dotted", "--": "dashed"}


def results_page(results: Sequence[RetrievalResult], *, max_items: int = 30) -> str:
    """The page as one HTML text; whatever the texts hold, it is shown and never interpreted."""
    sections = "\n".join(_section(result, max_items) for result in results)
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        f"<title>Retrieval evidence</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n"
        f"<h1>Retrieval evidence</h1>\n{sections}\n</body>\n</html>\n"
    )


def write_page(path: Path, results: Sequence[RetrievalResult]) -> None:
    """Write the page of some results, whole or not at all."""
    with whole_file(path) as aside:
        aside.write_text(results_page(results), encoding="utf-8")


def _section(result: RetrievalResult, max_items: int) -> str:
    parts = [f"<h2>{escape(result.query)}</h2>", f'<p class="retriever">retriever {escape(result.retriever)}</p>']
    if picture := draw_svg(result):
        parts.append(f"<figure>{picture}<figcaption>{_legend(result)}</figcaption></figure>")
    if lines := explain_evidence(result.evidence, max_items):
        text = escape("\n".join(lines))
        parts.append(f"<details><summary>What the retriever saw in the query</summary><pre>{text}</pre></details>")
    parts += [_hit(rank, hit, max_items) for rank, hit in enumerate(result.hits, start=1)]
    if not result.hits:
        parts.append("<p>No chunk was found.</p>")
    return "\n".join(parts)


def _legend(result: RetrievalResult) -> str:
    nodes, arrows = legend(result)
    marks = [("node", f"border-color:{s.colour};background:{s.fill}", s.meaning) for s in nodes]
    marks += [("arrow", f"border-top:{s.width + 0.5}px {_DASHES[s.dashes]} {s.colour}", s.meaning) for s in arrows]
    return "".join(f'<span><span class="{kind}" style="{style}"></span> {text}</span>' for kind, style, text in marks)


def _hit(rank: int, hit: Hit, max_items: int) -> str:
    names = escape(", ".join(hit.document_ids))
    title = f" <strong>{escape(hit.title)}</strong>" if hit.title else ""
    items = "".join(f"<li>{escape(item.line)}</li>" for item in hit.evidence[:max_items])
    more = len(hit.evidence) - max_items
    items += f"<li>… and {more} more</li>" if more > 0 else ""
    evidence = f"<details><summary>Evidence</summary><ul>{items}</ul></details>" if items else ""
    return (
        f'<div class="hit"><p>{rank}.{title} <span class="source">{names}, characters {hit.start}-{hit.end}, '
        f"score {hit.score:.3f}</span></p><p>{escape(hit.text)}</p>{evidence}</div>"
    )
