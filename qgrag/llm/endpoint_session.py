"""What every use of an endpoint shares: a client on its own loop, pacing, attempts, and the watch over
open calls."""

import asyncio
import logging
import random
import time
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from qgrag.llm.config import Pace
from qgrag.llm.endpoint_client import NO_KEY, endpoint_url, make_client
from qgrag.llm.endpoint_errors import ATTEMPT_ERRORS, Fault, classify
from qgrag.llm.event_loop import LoopThread
from qgrag.llm.open_calls import OpenCall, OpenCalls
from qgrag.llm.pacing import Pacer, retry_delay

logger = logging.getLogger(__name__)

T = TypeVar("T")


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
        self._secret = "" if self.client.api_key == NO_KEY else self.client.api_key
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
        """Attempt a request, in its turn, as often as it takes or is allowed.

        Args:
            attempt: makes one; raises one of `ATTEMPT_ERRORS` or `UnusableAnswerError`.
            tokens: that it will probably use.
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
                fault = classify(error, time.monotonic() - started, self._secret)
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
