"""The one thing that a backend does."""

from collections.abc import Callable, Sequence
from typing import Protocol

from qgrag.llm.budget import Budget
from qgrag.llm.records import CompletionError, Reply, Request

OnReply = Callable[[int, Reply], None]


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
