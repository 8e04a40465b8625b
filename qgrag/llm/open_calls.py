"""Know which calls are under way, and say so when nothing comes back for long."""

import asyncio
import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

logger = logging.getLogger(__name__)

NAMED_CALLS = 3


@dataclass(slots=True)
class OpenCall:
    """A call under way: for whom, since when (`time.monotonic`), and what it is waiting for."""

    owner: str
    since: float = field(default_factory=time.monotonic)
    awaits: str = "its answer"


class OpenCalls:
    """Calls under way to one address.

    Args:
        url: where they went; for messages.
        quiet_seconds: how long without any answer before a message, and between messages.
    """

    def __init__(self, url: str, quiet_seconds: float) -> None:
        self._url = url
        self._quiet_seconds = quiet_seconds
        self._open: dict[int, OpenCall] = {}
        self._last_answer = time.monotonic()

    @contextmanager
    def open(self, owner: str) -> Iterator[OpenCall]:
        """The block in which a call for `owner` is under way, waiting for its turn and retries included."""
        call = OpenCall(owner)
        self._open[id(call)] = call
        try:
            yield call
        finally:
            del self._open[id(call)]
            self._last_answer = time.monotonic()

    async def watch(self) -> None:
        """Log what is being waited for whenever it has been quiet, until cancelled."""
        while True:
            await asyncio.sleep(self._quiet_seconds)
            now = time.monotonic()
            if self._open and now - self._last_answer >= self._quiet_seconds:
                logger.warning("%s", self.describe(now))

    def describe(self, now: float) -> str:
        oldest = sorted(self._open.values(), key=lambda call: call.since)[:NAMED_CALLS]
        names = ", ".join(f"{c.owner or 'unnamed'} for {now - c.since:.0f} s (awaits {c.awaits})" for c in oldest)
        return (
            f"no answer from {self._url} for {now - self._last_answer:.0f} s; "
            f"{len(self._open)} calls are open, the oldest: {names}"
        )
