"""Know which calls are under way, and say so when nothing comes back for long."""

import asyncio
import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager

logger = logging.getLogger(__name__)

NAMED_CALLS = 3


class OpenCalls:
    """Calls under way to one address.

    Args:
        url: where they went; for messages.
        quiet_seconds: how long without any answer before a message, and between messages.
    """

    def __init__(self, url: str, quiet_seconds: float) -> None:
        self._url = url
        self._quiet_seconds = quiet_seconds
        self._open: dict[int, tuple[str, float]] = {}
        self._count = 0
        self._last_answer = time.monotonic()

    @contextmanager
    def open(self, owner: str) -> Iterator[None]:
        """The block in which a call for `owner` is under way, waiting for its turn and retries included."""
        self._count += 1
        number = self._count
        self._open[number] = (owner, time.monotonic())
        try:
            yield
        finally:
            del self._open[number]
            self._last_answer = time.monotonic()

    async def watch(self) -> None:
        """Log what is being waited for whenever it has been quiet, until cancelled."""
        while True:
            await asyncio.sleep(self._quiet_seconds)
            now = time.monotonic()
            if self._open and now - self._last_answer >= self._quiet_seconds:
                logger.warning("%s", self.describe(now))

    def describe(self, now: float) -> str:
        oldest = sorted(self._open.values(), key=lambda call: call[1])[:NAMED_CALLS]
        names = ", ".join(f"{owner or 'unnamed'} for {now - since:.0f} s" for owner, since in oldest)
        return (
            f"no answer from {self._url} for {now - self._last_answer:.0f} s; "
            f"{len(self._open)} calls are open, the oldest: {names}"
        )
