"""Answer figures of a run as tables for the terminal."""

from collections.abc import Mapping
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from qgrag.evaluation.answers.summary import AnswerSummary

ANSWER_LABELS = {
    "exact_match": "EM",
    "f1": "F1",
    "contains": "contains",
    "rouge1": "R-1",
    "rougeL": "R-L",
    "bleu1": "B-1",
    "meteor": "METEOR",
    "judge": "judge",
}


def answer_table(summary: AnswerSummary) -> RenderableType:
    """One table per group with one row per retriever, then what answers cost, and win rates where there are any.

    Each value stands above its interval; for `rich.console.Console.print`.
    """
    parts: list[RenderableType] = []
    shown = [group for group, counts in summary.counts.items() if counts["measured"]]
    for group in shown if len(shown) != 2 else shown[:1]:
        parts += [_group_table(summary, group), Text()]
    left_out = summary.counts["overall"]["not_judged"]
    if left_out:
        parts.append(Text(f"{left_out} questions are in no figure, since the judge gave no verdict on some answer."))
    for name, costs in summary.costs.items():
        tokens = f"{costs['prompt_tokens']:.0f} + {costs['completion_tokens']:.0f} tokens per question"
        shares = f"{costs['unanswered']:.0%} called unanswerable, {costs['failed']:.0%} failed"
        parts.append(Text(f"{name}: {tokens} in {costs['calls']:.1f} calls; {shares}"))
    if summary.comparisons:
        parts += [Text(), win_rate_table(summary.comparisons)]
    return Group(*parts)


def _group_table(summary: AnswerSummary, group: str) -> Table:
    table = Table(
        title=f"answers, {group}: {summary.counts[group]['measured']} questions",
        title_justify="left",
        box=SIMPLE_HEAD,
        padding=0,
        show_edge=False,
    )
    table.add_column("retriever", overflow="fold")
    figures = {name: groups[group] for name, groups in summary.retrievers.items() if group in groups}
    columns = [metric for metric in ANSWER_LABELS if any(metric in values for values in figures.values())]
    for metric in columns:
        table.add_column(ANSWER_LABELS[metric], justify="right", min_width=9)
    for name, values in figures.items():
        table.add_row(name, *(_with_interval(values[metric]) for metric in columns))
    return table


def win_rate_table(comparisons: Mapping[str, Mapping[str, Any]]) -> Table:
    """One row per pair and criterion: win rate of the first with its interval, agreement, position bias."""
    table = Table(
        title="win rate of the first, each pair judged in both orders", title_justify="left", box=SIMPLE_HEAD, padding=0
    )
    for column in ("pair", "criterion", "wins", "agreement", "position bias", "questions"):
        table.add_column(column, justify="left" if column in ("pair", "criterion") else "right")
    for pair, rates in comparisons.items():
        for criterion, value in rates["rates"].items():
            agreement = rates["agreement"].get(criterion)
            table.add_row(
                pair,
                criterion,
                _with_interval(value),
                "" if agreement is None else f"{agreement:.2f}",
                f"{rates['position_bias'][criterion]:+.2f}",
                str(rates["questions"]),
            )
        if not rates["rates"]:
            table.add_row(pair, "no order was judged", "", "", "", "0")
    return table


def _with_interval(value: Mapping[str, float]) -> str:
    return f"{value['mean']:.3f}\n{value['low']:.2f}-{value['high']:.2f}"
