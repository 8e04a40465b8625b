"""What several commands print."""

from collections.abc import Sequence

from rich.console import Console
from rich.markup import escape


def show_problems(console: Console, problems: Sequence[object], label: str = "left out", most: int = 20) -> None:
    """Name what is wrong with the input, the first `most` problems one by one."""
    for problem in problems[:most]:
        console.print(f"[yellow]{label}[/] {escape(str(problem))}", highlight=False)
    if len(problems) > most:
        console.print(f"[yellow]{label}[/] {len(problems) - most} more", highlight=False)
