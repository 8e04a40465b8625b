"""What a backend does, and the limit on what a run may spend."""

import threading
from collections.abc import Callable, Sequence
from typing import Protocol

from qgrag.llm.records import CompletionError, Reply, Request

OnReply = Callable[[int, Reply], None]


class Budget:
    """Counts calls and tokens against limits; safe to share between threads.

    A call is admitted before it is sent, so that `max_calls` is never exceeded. Tokens are known only
    afterwards: calls already under way when `max_tokens_total` is reached still finish.
    """

    def __init__(self, max_calls: int | None = None, max_tokens_total: int | None = None) -> None:
        self.max_calls = max_calls
        self.max_tokens_total = max_tokens_total
        self.calls = 0
        self.tokens = 0
        self._lock = threading.Lock()

    def admit(self) -> bool:
        """Whether one more call may be sent; counts it if so."""
        with self._lock:
            if self.exhausted:
                return False
            self.calls += 1
            return True

    def spend(self, tokens: int) -> None:
        with self._lock:
            self.tokens += tokens

    @property
    def exhausted(self) -> bool:
        no_calls = self.max_calls is not None and self.calls >= self.max_calls
        no_tokens = self.max_tokens_total is not None and self.tokens >= self.max_tokens_total
        return no_calls or no_tokens

    def __str__(self) -> str:
        calls = f"{self.calls}" if self.max_calls is None else f"{self.calls} of {self.max_calls}"
        tokens = f"{self.tokens}" if self.max_tokens_total is None else f"{self.tokens} of {self.max_tokens_total}"
        return f"{calls} calls, {tokens} tokens"


class Backend(Protocol):
    """Answers requests; knows nothing of caches or of what the answers mean."""

    @property
    def name(self) -> str:
        """Of the model, as it enters cache keys and manifests."""
        ...

    def generate(self, requests: Sequence[Request], budget: Budget, on_reply: OnReply) -> None:
        """Answer each request, calling `on_reply(index, reply)` once for each as soon as it is known, in
        any order and perhaps from another thread, one call at a time.

        What goes wrong with one request is its reply's error; a request that the budget does not admit
        gets the error `budget`.

        Raises:
            LLMUnavailableError: nothing can be answered at all.
        """
        ...

    def close(self) -> None:
        """Let go of connections and memory."""
        ...


def over_budget(budget: Budget) -> Reply:
    """The reply to a request that was not sent."""
    return Reply(error=CompletionError("budget", f"not sent, the budget is spent ({budget})"))
