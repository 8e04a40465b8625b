"""Accounting: what each step spent, as a whole and for each chunk or query that it was spent on."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import asdict, dataclass, fields
from typing import Any


@dataclass(frozen=True, slots=True)
class Usage:
    """A sum over requests.

    Args:
        calls: requests that a model answered; cache hits are not among them.
        prompt_tokens: as counted by the backend.
        completion_tokens: as counted by the backend.
        cache_hits: requests answered by the cache.
        retries: attempts that failed and were made again.
        asked_again: calls made because an answer did not fit its schema (contained in `calls` or
            `cache_hits`).
        failures: requests without a usable answer.
        seconds: time spent waiting for answers; of a step, wall-clock time.
    """

    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cache_hits: int = 0
    retries: int = 0
    asked_again: int = 0
    failures: int = 0
    seconds: float = 0.0

    @property
    def tokens(self) -> int:
        """Prompt and completion tokens together."""
        return self.prompt_tokens + self.completion_tokens

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(**{f.name: getattr(self, f.name) + getattr(other, f.name) for f in fields(Usage)})

    def to_dict(self) -> dict[str, float]:
        return asdict(self)


Usages = Mapping[str, Mapping[str, float]]
"""Step to the numbers of its `Usage`, as `Meter.to_dict` gives them."""


def sum_usages(*parts: Usages) -> dict[str, dict[str, float]]:
    """The sum of several accounts, by step."""
    total: dict[str, Usage] = {}
    for part in parts:
        for step, numbers in part.items():
            total[step] = total.get(step, Usage()) + Usage(**numbers)  # type: ignore[arg-type]
    return {step: usage.to_dict() for step, usage in total.items()}


class Meter:
    """Usage by step, and within each step by owner (a chunk's id or a query)."""

    def __init__(self) -> None:
        self.steps: dict[str, Usage] = {}
        self._owners: dict[str, dict[str, Usage]] = {}

    def add(self, step: str, usage: Usage) -> None:
        self.steps[step] = self.steps.get(step, Usage()) + usage

    def add_owner(self, step: str, owner: str, usage: Usage) -> None:
        of_owner = self._owners.setdefault(owner, {})
        of_owner[step] = of_owner.get(step, Usage()) + usage

    def of(self, owner: str) -> dict[str, Usage]:
        """What was spent for one chunk or query, by step; empty if nothing was."""
        return dict(self._owners.get(owner, {}))

    @property
    def total(self) -> Usage:
        return sum(self.steps.values(), Usage())

    def merge(self, other: "Meter") -> None:
        """Add everything that another meter saw."""
        for step, usage in other.steps.items():
            self.add(step, usage)
        for owner, steps in other._owners.items():
            for step, usage in steps.items():
                self.add_owner(step, owner, usage)

    def to_dict(self, owner: str | None = None) -> dict[str, Any]:
        """Step to its numbers, JSON-serialisable; of one owner if it is given."""
        steps = self.steps if owner is None else self.of(owner)
        return {step: usage.to_dict() for step, usage in steps.items()}


_ACTIVE: ContextVar[tuple[Meter, ...]] = ContextVar("qgrag_usage_meters", default=())


@contextmanager
def measure() -> Iterator[Meter]:
    """A meter of every language model call that this block makes; blocks may be nested.

    >>> with measure() as meter:
    ...     pass
    >>> meter.total.calls
    0
    """
    meter = Meter()
    token = _ACTIVE.set((*_ACTIVE.get(), meter))
    try:
        yield meter
    finally:
        _ACTIVE.reset(token)


def active_meters() -> tuple[Meter, ...]:
    """The meters of the blocks that the caller is in."""
    return _ACTIVE.get()
