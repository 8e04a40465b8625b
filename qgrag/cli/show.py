"""What several commands print."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from rich.console import Console
from rich.markup import escape
from rich.table import Table

if TYPE_CHECKING:
    from qgrag.llm.model import StepEstimate


def show_problems(console: Console, problems: Sequence[object], label: str = "left out", most: int = 20) -> None:
    """Name what is wrong with the input, the first `most` problems one by one."""
    for problem in problems[:most]:
        console.print(f"[yellow]{label}[/] {escape(str(problem))}", highlight=False)
    if len(problems) > most:
        console.print(f"[yellow]{label}[/] {len(problems) - most} more", highlight=False)


def show_usage(console: Console, usage: Mapping[str, Mapping[str, float]], title: str) -> None:
    """One row per step that asked a language model; nothing if none was asked."""
    if not usage:
        return
    table = Table(title=title, title_justify="left")
    table.add_column("step", no_wrap=True)
    for name in ("calls", "cached", "prompt tokens", "answer tokens", "again", "failed", "seconds"):
        table.add_column(name, justify="right")
    columns = ("calls", "cache_hits", "prompt_tokens", "completion_tokens", "asked_again", "failures")
    for step, numbers in usage.items():
        table.add_row(step, *(f"{numbers[column]:,}" for column in columns), f"{numbers['seconds']:,.1f}")
    console.print(table)


def show_estimates(console: Console, estimates: "Sequence[StepEstimate]") -> None:
    """One row per step that would ask a language model; nothing if none would."""
    if not estimates:
        return
    table = Table(title="asked of the language model, by estimate", title_justify="left")
    for name in ("step", "calls", "cached", "prompt tokens", "answer tokens"):
        table.add_column(name, justify="left" if name == "step" else "right")
    for e in estimates:
        numbers = (e.calls, e.cache_hits, e.prompt_tokens, e.completion_tokens)
        table.add_row(e.step, *(f"{number:,}" for number in numbers))
    console.print(table)


def show_extraction(console: Console, extraction: Mapping[str, Mapping[str, int]]) -> None:
    """One line per kind of result of which anything was counted."""
    for kind, counts in extraction.items():
        if counts:
            listed = ", ".join(f"{count:,} {name.replace('_', ' ')}" for name, count in counts.items())
            console.print(f"counted in extracting {kind}: {listed}", highlight=False)
