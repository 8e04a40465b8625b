"""Progress bars on stderr, drawn only for work that lasts longer than two seconds.

Of nested bars the outermost is drawn.
"""

import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import ClassVar, TypeVar

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

T = TypeVar("T")
DELAY_SECONDS = 2.0


class Bar:
    """Handle of one running bar; `advance` is cheap to call often."""

    _drawn: ClassVar["Bar | None"] = None

    def __init__(self, description: str, total: int) -> None:
        self._description = description
        self._total = total
        self._done = 0
        self._start = time.monotonic()
        self._progress: Progress | None = None

    def advance(self, steps: int = 1) -> None:
        self._done += steps
        if self._progress is None:
            early = time.monotonic() - self._start < DELAY_SECONDS
            if early or Bar._drawn is not None or not sys.stderr.isatty():
                return
            Bar._drawn = self
            self._progress = Progress(
                TextColumn("{task.description}"),
                BarColumn(),
                MofNCompleteColumn(),
                TimeElapsedColumn(),
                TextColumn("left"),
                TimeRemainingColumn(),
                console=Console(stderr=True),
                transient=True,
            )
            self._progress.start()
            self._task = self._progress.add_task(self._description, total=self._total)
        self._progress.update(self._task, completed=self._done)

    def close(self) -> None:
        if self._progress is not None:
            self._progress.stop()
            Bar._drawn = None


@contextmanager
def progress(description: str, total: int) -> Iterator[Bar]:
    """Open a bar over `total` steps: `with progress("Encoding", n) as bar: bar.advance()`."""
    bar = Bar(description, total)
    try:
        yield bar
    finally:
        bar.close()


def track(items: Iterable[T], description: str, total: int) -> Iterator[T]:
    """Yield `items` unchanged while a bar counts them."""
    with progress(description, total) as bar:
        for item in items:
            yield item
            bar.advance()
