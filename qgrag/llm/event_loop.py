"""An event loop on a thread of its own, so that synchronous callers, notebooks included, can use async
clients."""

import asyncio
import threading
from collections.abc import Coroutine
from concurrent.futures import CancelledError
from contextlib import suppress
from typing import Any, TypeVar

T = TypeVar("T")


class LoopThread:
    """Runs coroutines for callers of other threads; the loop lives as long as this object."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="qgrag-llm", daemon=True)
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """The coroutine's result. An interrupt (Ctrl-C) cancels what it has under way before it is raised
        here."""
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
