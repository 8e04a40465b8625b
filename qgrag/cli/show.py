"""What several commands print."""

from collections.abc import Sequence

from rich.console import Console
from rich.markup import escape


def show_problems(console: Console, problems: Sequence[object], most: int = 20) -> None:
    """Name what was left out of the input, the first `most` one by one."""
    for problem in problems[:most]:
        console.print(f"[yellow]left out[/] {escape(str(problem))}", highlight=False)
    if len(problems) > most:
        console.print(f"[yellow]left out[/] {len(problems) - most} more", highlight=False)
