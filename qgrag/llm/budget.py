"""A limit on what a run may spend."""

import threading


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
