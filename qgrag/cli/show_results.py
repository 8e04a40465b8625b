"""What was retrieved for a question, and its answer, on the terminal."""

from typing import TYPE_CHECKING

from rich.console import Console
from rich.markup import escape

from qgrag.retrieval.evidence.explain import explain as explain_result

if TYPE_CHECKING:
    from qgrag.generation.answers import Answer
    from qgrag.retrieval.results import RetrievalResult


def show_result(console: Console, result: "RetrievalResult", *, explain: bool) -> None:
    if explain:
        console.print(f"\n{explain_result(result)}", markup=False, highlight=False, soft_wrap=True)
        return
    console.print(f"\n[bold]{escape(result.query)}[/]  [dim]({result.retriever})[/]", highlight=False)
    if not result.hits:
        console.print("  no chunk found", highlight=False)
    for rank, hit in enumerate(result.hits, start=1):
        names = ", ".join(hit.document_ids)
        console.print(
            f"{rank:>3}. [cyan]{escape(names)}[/] [dim]characters {hit.start}-{hit.end}[/]  {hit.score:.3f}",
            highlight=False,
        )
        text = " ".join(hit.text.split())
        console.print(f"     {escape(text[:240])}{'…' if len(text) > 240 else ''}", highlight=False)


def show_answer(console: Console, answer: "Answer | None", result: "RetrievalResult", *, explain: bool) -> None:
    """The answer and what it cites; the evidence where that is asked for or nothing is cited."""
    if answer is not None:
        console.print(f"\n[bold]{escape(answer.query)}[/]", highlight=False)
        if answer.error:
            console.print(f"  [yellow]no answer[/] {escape(answer.error)}", highlight=False)
        else:
            console.print(f"  {escape(answer.text)}{' …' if answer.truncated else ''}", highlight=False)
        for citation in answer.citations:
            names = escape(", ".join(citation.document_ids))
            console.print(
                f"  {escape(f'[{citation.number}]')} [cyan]{names}[/] "
                f"[dim]characters {citation.start}-{citation.end}[/]",
                highlight=False,
            )
        if answer.invented_citations:
            console.print(f"  {answer.invented_citations} citations of passages that were not shown were taken out")
        if not answer.citations:
            console.print("  It cites no passage; this is what was found:", highlight=False)
    if answer is None or explain or not answer.citations:
        show_result(console, result, explain=explain)
