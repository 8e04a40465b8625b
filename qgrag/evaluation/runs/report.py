"""A run's figures as tables: for the terminal, and as Markdown for reports and notebooks."""

from collections.abc import Mapping, Sequence
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from qgrag.evaluation.runs.sets import MEAN, SetsSummary
from qgrag.evaluation.runs.summary import OVERALL, Summary, milliseconds_per_question

NO_TOKENS = "0"
LABELS = {
    "recall": "R",
    "all_evidence": "All",
    "mrr": "MRR",
    "ndcg": "nDCG",
    "hit": "Hit",
    "precision": "P",
    "f1": "F1",
}


def default_columns(ks: Sequence[int]) -> list[str]:
    """Recall at every cut-off, all-evidence at every cut-off above 1, MRR and nDCG at the largest."""
    return [
        *(f"recall@{k}" for k in ks),
        *(f"all_evidence@{k}" for k in ks if k > 1),
        f"mrr@{max(ks)}",
        f"ndcg@{max(ks)}",
    ]


def summary_table(summary: Summary, columns: Sequence[str] | None = None) -> RenderableType:
    """One table per group with one row per retriever, and the time per question below.

    The best value of each column is bold.

    Args:
        summary: of a run.
        columns: names of metrics, `default_columns` if not given.

    Returns:
        For `rich.console.Console.print`.
    """
    columns = columns or default_columns(summary.settings["ks"])
    parts: list[RenderableType] = []
    for group in summary.shown_groups():
        parts += [_group_table(summary, group, columns), Text()]
    parts.append(Text("R: recall. All: share of questions for which every gold document was found."))
    left_out = summary.counts["overall"]["without_gold"]
    if left_out:
        parts.append(Text(f"{left_out} questions without gold documents are in no figure."))
    if summary.problems:
        parts.append(Text(f"{len(summary.problems)} problems with the data are listed in the summary."))
    for name, timing in summary.timings["retrievers"].items():
        per_question = milliseconds_per_question(timing)
        parts.append(Text(f"{name}: {per_question:.1f} ms per question, {timing['first']:.1f} s for the first"))
    parts.append(Text("The first question waits for models to load and for what a retriever prepares once."))
    return Group(*parts)


def _group_table(summary: Summary, group: str, columns: Sequence[str]) -> Table:
    counts = summary.counts[group]
    table = Table(
        title=f"{summary.settings['dataset']['name']}, {group}: {counts['measured']} questions",
        title_justify="left",
        box=SIMPLE_HEAD,
        padding=0,
        show_edge=False,
    )
    table.add_column("retriever", overflow="fold")
    for column in columns:
        measure, _, k = column.partition("@")
        table.add_column(f"{LABELS[measure]}\n@{k}", justify="right", min_width=5)
    best = {column: max(figures[group][column] for figures in summary.retrievers.values()) for column in columns}
    for name, figures in summary.retrievers.items():
        values = figures[group]
        cells = (
            Text(f"{values[column]:.3f}", style="bold" if values[column] == best[column] else "") for column in columns
        )
        table.add_row(name, *cells)
    return table


def markdown_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table in Markdown."""
    lines = [f"| {' | '.join(header)} |", f"| {' | '.join('---' for _ in header)} |"]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows)]) + "\n"


def summary_markdown(summary: Summary) -> str:
    """One table per group: recall, all-evidence and MRR with their intervals, milliseconds and tokens per question.

    The cut-offs shown are the first, the middle and the last of the run's.
    """
    ks = summary.settings["ks"]
    shown = sorted({ks[0], ks[len(ks) // 2], ks[-1]})
    names = [f"recall@{k}" for k in shown] + [f"all_evidence@{shown[-1]}", f"mrr@{ks[-1]}"]
    parts = [f"# {summary.settings['dataset']['name']}", ""]
    for group in summary.shown_groups():
        header = ["retriever", *names, "ms per question", "tokens per question"]
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
    return f"{milliseconds_per_question(timing):.1f}" if timing else "-"


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


def sets_table(summary: SetsSummary) -> Table:
    """One row per retriever and metric, one column per data set; each mean stands above its interval."""
    table = Table(title="all sets", title_justify="left", box=SIMPLE_HEAD, padding=0, show_edge=False)
    table.add_column("retriever", overflow="fold")
    sets = [*summary.questions, MEAN]
    for name in sets:
        count = summary.questions.get(name)
        table.add_column(f"{name}\n{'of sets' if count is None else count}", justify="right", min_width=9)
    for metric in summary.metrics:
        table.add_section()
        table.add_row(Text(metric, style="italic"))
        values = {name: [own[name][metric] for own in summary.retrievers.values()] for name in sets}
        best = {name: max(value["mean"] for value in column) for name, column in values.items()}
        for retriever, own in summary.retrievers.items():
            cells = []
            for name in sets:
                value = own[name][metric]
                cell = f"{value['mean']:.3f}\n{value['low']:.2f}-{value['high']:.2f}"
                cells.append(Text(cell, style="bold" if value["mean"] == best[name] else ""))
            table.add_row(retriever, *cells)
    return table


def sets_markdown(summary: SetsSummary) -> str:
    """One table per metric: retrievers in rows, data sets in columns, with intervals."""
    parts = []
    for metric in summary.metrics:
        header = ["retriever", *(f"{name} ({count})" for name, count in summary.questions.items()), MEAN]
        rows = []
        for retriever, own in summary.retrievers.items():
            values = [own[name][metric] for name in (*summary.questions, MEAN)]
            rows.append([f"`{retriever}`", *(interval_text(v["mean"], (v["low"], v["high"])) for v in values)])
        parts += [f"## {metric}", "", markdown_table(header, rows)]
    parts.append("The numbers of questions and, in the cells, bootstrap intervals over questions stand in brackets.")
    return "\n".join(parts) + "\n"
