"""A run's figures as a Markdown document, for reports and notebooks."""

from collections.abc import Mapping, Sequence
from typing import Any

from qgrag.evaluation.runs.summary import OVERALL, Summary, milliseconds_a_question

NO_TOKENS = "0"


def markdown_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table in Markdown."""
    lines = [f"| {' | '.join(header)} |", f"| {' | '.join('---' for _ in header)} |"]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows)]) + "\n"


def summary_markdown(summary: Summary) -> str:
    """One table a group: recall, all-evidence and MRR with their intervals, milliseconds and tokens a question.

    The cut-offs shown are the first, the middle and the last of the run's.
    """
    ks = summary.settings["ks"]
    shown = sorted({ks[0], ks[len(ks) // 2], ks[-1]})
    names = [f"recall@{k}" for k in shown] + [f"all_evidence@{shown[-1]}", f"mrr@{ks[-1]}"]
    parts = [f"# {summary.settings['dataset']['name']}", ""]
    for group in summary.shown_groups():
        header = ["retriever", *names, "ms a question", "tokens a question"]
        rows = []
        for name, figures in summary.retrievers.items():
            cells = [interval_text(figures[group][n], summary.intervals[name][group][n]) for n in names]
            rows.append([f"`{name}`", *cells, _milliseconds(summary, name), _tokens(summary, name)])
        parts += [f"## {group}: {summary.counts[group]['measured']} questions", "", markdown_table(header, rows)]
    share = summary.settings["bootstrap"]["confidence"]
    parts.append(f"In brackets: {share:.0%} intervals of a bootstrap over questions.")
    return "\n".join(parts) + "\n"


def interval_text(mean: float, interval: Sequence[float]) -> str:
    """`0.712 (0.66-0.76)`."""
    return f"{mean:.3f} ({interval[0]:.2f}-{interval[1]:.2f})"


def _milliseconds(summary: Summary, name: str) -> str:
    timing = summary.timings["retrievers"].get(name)
    return f"{milliseconds_a_question(timing):.1f}" if timing else "-"


def _tokens(summary: Summary, name: str) -> str:
    """Of a language model, in retrieval alone."""
    spent = _sum_tokens(summary.usage.get(name, {}))
    return f"{spent / summary.counts[OVERALL]['questions']:.0f}" if spent else NO_TOKENS


def _sum_tokens(usage: Mapping[str, Any]) -> float:
    return sum(
        _sum_tokens(value) if isinstance(value, Mapping) else value
        for key, value in usage.items()
        if isinstance(value, Mapping) or key in ("prompt_tokens", "completion_tokens")
    )
