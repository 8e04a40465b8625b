"""What every use of an endpoint shares: client, event loop, pacing, attempts, a watch over open calls."""

import asyncio
import logging
import random
import threading
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from concurrent.futures import CancelledError
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from qgrag.llm.config import Pace
from qgrag.llm.endpoint.client import endpoint_url, make_client
from qgrag.llm.endpoint.faults import ATTEMPT_ERRORS, Fault, classify
from qgrag.llm.endpoint.pacing import Pacer, retry_delay

logger = logging.getLogger(__name__)

NAMED_CALLS = 3

T = TypeVar("T")


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


class LoopThread:
    """An event loop on a thread of its own, so that synchronous callers (notebooks too) can use async clients."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="qgrag-llm", daemon=True)
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """The coroutine's result. An interrupt (Ctrl-C) cancels the coroutine before it is raised here."""
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        except BaseException:
            if not future.done():
                future.cancel()
            raise

    def close(self) -> None:
        """Stop the loop; what still runs is cancelled."""
        if self._loop.is_closed():
            return
        with suppress(TimeoutError, CancelledError):
            asyncio.run_coroutine_threadsafe(_cancel_others(), self._loop).result(timeout=5.0)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(timeout=5.0)
        if not self._loop.is_running():
            self._loop.close()


async def _cancel_others() -> None:
    tasks = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


class UnusableAnswerError(Exception):
    """An endpoint answered, but not with what was asked for."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault.message)
        self.fault = fault


@dataclass(frozen=True, slots=True)
class Sent(Generic[T]):
    """The end of a request: a value, or the fault of its last attempt."""

    value: T | None
    fault: Fault | None
    attempts: int


class EndpointSession:
    """Requests to one endpoint, from any thread."""

    def __init__(self, base_url: str, pace: Pace) -> None:
        self.pace = pace
        self.client = make_client(base_url, pace)
        self.url = endpoint_url(self.client)
        self.pacer = Pacer(pace.requests_per_minute, pace.tokens_per_minute)
        self._rng = random.Random()
        self._loop = LoopThread()

    def run(self, work: Callable[[OpenCalls], Coroutine[Any, Any, None]], workers: int) -> None:
        """Run `workers` copies of `work` until all are done; the first to raise cancels the others.

        When nothing has been answered for `pace.quiet_seconds`, the log says what is open.
        """
        self._loop.run(self._run(work, workers))

    def close(self) -> None:
        self._loop.run(self.client.close())
        self._loop.close()

    async def send(self, attempt: Callable[[], Awaitable[T]], tokens: int, call: OpenCall) -> Sent[T]:
        """Send a request when its turn comes. Attempt it again while its failure may pass and attempts are left.

        Args:
            attempt: makes one; raises one of `ATTEMPT_ERRORS` or `UnusableAnswerError`.
            tokens: an estimate of what the request will use.
            call: as the log names it.
        """
        allowed = self.pace.max_retries + 1
        for made in range(1, allowed + 1):
            await self._take_turn(tokens, call)
            started = time.monotonic()
            try:
                return Sent(await attempt(), None, made)
            except UnusableAnswerError as error:
                fault = error.fault
            except ATTEMPT_ERRORS as error:
                fault = classify(error, time.monotonic() - started, self.url)
            if not fault.passes or made == allowed:
                break
            await self._back_off(fault, made, call)
        return Sent(None, fault, made)

    async def _take_turn(self, tokens: int, call: OpenCall) -> None:
        call.awaits = "its turn under pace"
        await asyncio.sleep(self.pacer.book(time.monotonic(), tokens))
        call.awaits = "its answer"

    async def _back_off(self, fault: Fault, made: int, call: OpenCall) -> None:
        delay = retry_delay(made - 1, fault.retry_after, self._rng)
        if fault.kind == "rate_limit":
            self.pacer.hold(time.monotonic() + delay)
        logger.info("%s: %s; attempt %d in %.1f s", call.owner or self.url, fault.message, made + 1, delay)
        call.awaits = f"attempt {made + 1}, {delay:.0f} s after: {fault.message}"
        await asyncio.sleep(delay)

    async def _run(self, work: Callable[[OpenCalls], Coroutine[Any, Any, None]], workers: int) -> None:
        calls = OpenCalls(self.url, self.pace.quiet_seconds)
        watch = asyncio.create_task(calls.watch())
        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(workers):
                    group.create_task(work(calls))
        except BaseExceptionGroup as failures:
            raise failures.exceptions[0] from None
        finally:
            watch.cancel()
