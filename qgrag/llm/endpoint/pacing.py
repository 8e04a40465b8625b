"""Pure timing rules: when the next request may go, and how long to wait before another attempt."""

import random
from email.utils import parsedate_to_datetime

BACKOFF_BASE_SECONDS = 0.5
BACKOFF_CAP_SECONDS = 60.0
RETRY_AFTER_CAP_SECONDS = 600.0


class Pacer:
    """Spreads requests evenly to a rate of requests and tokens per minute.

    Each request books its share of a minute (60 / rate seconds, and 60 * tokens / rate) after the one
    before it: the generic cell rate algorithm with a burst of one (ITU-T I.371).
    """

    def __init__(self, requests_per_minute: float | None = None, tokens_per_minute: float | None = None) -> None:
        self.requests_per_minute = requests_per_minute
        self.tokens_per_minute = tokens_per_minute
        self._free = float("-inf")

    def book(self, now: float, tokens: int) -> float:
        """Seconds to wait from `now` before a request of `tokens` tokens may go."""
        start = max(now, self._free)
        self._free = start + self._share(1, tokens)
        return start - now

    def correct(self, tokens: int) -> None:
        """Book tokens that turned out to be needed beyond the estimate; negative where it was too high."""
        self._free += self._share(0, tokens)

    def hold(self, until: float) -> None:
        """Let nothing go before `until`: the endpoint asked for a pause."""
        self._free = max(self._free, until)

    def _share(self, requests: int, tokens: int) -> float:
        by_requests = 60.0 * requests / self.requests_per_minute if self.requests_per_minute else 0.0
        by_tokens = 60.0 * tokens / self.tokens_per_minute if self.tokens_per_minute else 0.0
        return by_tokens if abs(by_tokens) > by_requests else by_requests


def retry_delay(attempt: int, retry_after: float | None, rng: random.Random) -> float:
    """Seconds before attempt `attempt` + 1 (from 0): what the endpoint asked for, or backoff with jitter.

    Backoff is uniform in [c/2, c] with c = min(cap, base * 2^attempt), so that many clients do not return
    at once.
    """
    if retry_after is not None:
        return min(retry_after, RETRY_AFTER_CAP_SECONDS) + rng.uniform(0.0, 0.1 * BACKOFF_BASE_SECONDS)
    ceiling = min(BACKOFF_CAP_SECONDS, BACKOFF_BASE_SECONDS * 2.0**attempt)
    return rng.uniform(ceiling / 2, ceiling)


def parse_retry_after(value: str | None, now: float) -> float | None:
    """Seconds from a Retry-After header, given as seconds or as an HTTP date; None if there is none to be
    read.

    Args:
        value: the header.
        now: current time, seconds since the epoch.
    """
    if value is None:
        return None
    try:
        seconds = float(value)
    except ValueError:
        try:
            seconds = parsedate_to_datetime(value).timestamp() - now
        except (ValueError, TypeError, OverflowError):
            return None
    return max(0.0, seconds) if seconds == seconds and seconds != float("inf") else None
