"""What a build of an index would do and did, on the terminal."""

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from qgrag.cli.show import show_estimates, show_extraction, show_problems, show_usage
from qgrag.index.documents import Changes
from qgrag.index.reports import BuildPlan, BuildReport


def show_plan(console: Console, plan: BuildPlan) -> None:
    console.print(describe_changes(plan.changes))
    console.print(
        f"{plan.chunks} chunks in all, {plan.new_chunks} of them to embed and extract; "
        f"{plan.duplicates} documents repeat another's content. Nothing was written."
    )
    show_estimates(console, plan.estimates)


def show_report(console: Console, report: BuildReport) -> None:
    if not report.done:
        console.print(f"{escape(str(report.path))}: nothing has changed, nothing to do")
        return
    console.print(describe_changes(report.changes))
    table = Table("stage", title=escape(str(report.path)), title_justify="left", header_style="bold")
    table.add_column("seconds", justify="right")
    for stage, seconds in report.seconds.items():
        table.add_row(stage, f"{seconds:.1f}")
    console.print(table)
    console.print(", ".join(f"{count} {name.replace('_', ' ')}" for name, count in report.counts.items()))
    show_usage(console, report.usage, "asked of the language model")
    show_extraction(console, report.extraction)
    show_problems(console, report.empty, "empty", most=5)
    show_problems(console, report.failures, "failed")
    if report.failures:
        console.print(f"{len(report.failures)} extractions failed; the next qgrag index tries them again")


def describe_changes(changes: Changes) -> str:
    return (
        f"documents: {len(changes.added)} added, {len(changes.changed)} changed, "
        f"{len(changes.removed)} removed, {changes.unchanged} unchanged"
    )
