"""What a command could not do, kept in its folder for `qgrag info`, with the command that tries it again."""

import json
import shlex
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.markup import escape

from qgrag.cli.exit_codes import DONE, PARTLY
from qgrag.cli.show import show_problems

UNFINISHED = "unfinished.json"


def keep_unfinished(folder: Path, command: str, arguments: Sequence[str], failed: Sequence[str]) -> int:
    """Write what failed, or remove the note of an earlier run; returns the exit code.

    Args:
        folder: of the index or run.
        command: name of the subcommand.
        arguments: of the subcommand.
        failed: one sentence per thing that failed.
    """
    path = folder / UNFINISHED
    if not failed:
        path.unlink(missing_ok=True)
        return DONE
    again = shlex.join(["qgrag", command, *arguments])
    path.write_text(json.dumps({"again": again, "failed": list(failed)}, indent=2, ensure_ascii=False) + "\n", "utf-8")
    return PARTLY


def show_unfinished(console: Console, folder: Path, most: int = 20) -> None:
    """List what the last run in a folder could not do; nothing if it did everything."""
    path = folder / UNFINISHED
    if not path.is_file():
        return
    note = json.loads(path.read_text(encoding="utf-8"))
    console.print(f"{len(note['failed'])} failed in the last run:", highlight=False)
    show_problems(console, note["failed"], "failed", most)
    console.print(f"to try again: {escape(note['again'])}", highlight=False, soft_wrap=True)
