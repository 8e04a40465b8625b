import math
import random
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qgrag.llm.endpoint.pacing import BACKOFF_CAP_SECONDS, Pacer, parse_retry_after, retry_delay
from qgrag.llm.tokens import estimate_message_tokens, estimate_tokens


def test_requests_are_spread_over_the_minute() -> None:
    pacer = Pacer(requests_per_minute=60)
    assert [pacer.book(100.0, 0) for _ in range(4)] == [0, 1, 2, 3]
    assert pacer.book(200.0, 0) == 0


def test_tokens_count_before_and_are_corrected_after() -> None:
    pacer = Pacer(tokens_per_minute=600)
    assert pacer.book(0.0, 100) == 0
    assert pacer.book(0.0, 0) == 10
    pacer.correct(-50)
    assert pacer.book(0.0, 0) == 5


def test_a_pause_holds_everybody() -> None:
    pacer = Pacer()
    pacer.hold(7.0)
    assert pacer.book(5.0, 10) == 2
    assert pacer.book(8.0, 10) == 0


@settings(deadline=None, max_examples=60)
@given(st.floats(1, 1000), st.lists(st.floats(0, 2), min_size=2, max_size=40))
def test_no_rate_is_exceeded(rate: float, gaps: list[float]) -> None:
    pacer, now, sent = Pacer(requests_per_minute=rate), 0.0, []
    for gap in gaps:
        now += gap
        sent.append(now + pacer.book(now, 0))
    assert all(later - earlier >= 60 / rate - 1e-6 for earlier, later in pairwise(sent))


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        (None, None),
        ("3", 3.0),
        ("0.5", 0.5),
        ("-1", 0.0),
        ("Thu, 01 Jan 1970 00:01:40 GMT", 90.0),
        ("soon", None),
        ("nan", None),
        ("inf", None),
        ("", None),
    ],
)
def test_retry_after(header: str | None, seconds: float | None) -> None:
    assert parse_retry_after(header, now=10.0) == seconds


@settings(deadline=None)
@given(st.text(max_size=40) | st.floats().map(str))
def test_any_retry_after_is_a_wait_or_none(header: str) -> None:
    seconds = parse_retry_after(header, 0.0)
    assert seconds is None or (seconds >= 0 and math.isfinite(seconds))


def test_backoff_grows_and_has_a_ceiling(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("qgrag.llm.endpoint.pacing.BACKOFF_BASE_SECONDS", 1.0)
    rng = random.Random(0)
    for attempt in range(3):
        delays = [retry_delay(attempt, None, rng) for _ in range(50)]
        assert 2**attempt / 2 <= min(delays) < max(delays) <= 2**attempt
    assert retry_delay(40, None, rng) <= BACKOFF_CAP_SECONDS
    assert 7 <= retry_delay(0, 7.0, rng) < 7.1


def test_token_estimates() -> None:
    assert estimate_tokens("") == 0
    assert estimate_tokens("李华") == 2
    assert estimate_tokens("abcde") == 2
    assert estimate_message_tokens([{"role": "user", "content": "abcd"}]) == 5
