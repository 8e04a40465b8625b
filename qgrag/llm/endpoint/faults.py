"""What an endpoint's failures mean: which may pass, which belong to one request, which end the run."""

import json
import re
import time
from dataclasses import dataclass, replace
from typing import Any

import openai

from qgrag.llm.endpoint.pacing import parse_retry_after
from qgrag.llm.records import CompletionError, ErrorKind

ATTEMPT_ERRORS = (openai.APIError, TimeoutError, json.JSONDecodeError, UnicodeDecodeError)
"""What the client raises for one attempt; the last two for a body that is no JSON."""

MESSAGE_CHARS = 400
FORMAT_STATUSES = frozenset({400, 415, 422, 500, 501})
PASSING_STATUSES = frozenset({408, 409, 425, 429})
ENDING_STATUSES = frozenset({401, 403, 404, 405})

_OVERFLOW = re.compile(
    r"context[ _]?(?:length|window|size)|maximum (?:context|prompt|input)|(?:prompt|input) is too long|"
    r"too many tokens|exceed\w* (?:the )?(?:available )?context|n_ctx",
    re.I,
)
_QUOTA = re.compile(r"insufficient_quota|billing|credit balance", re.I)


@dataclass(frozen=True, slots=True)
class Fault:
    """One failed attempt.

    Args:
        kind: see `CompletionError`.
        message: what happened, without any key.
        passes: another attempt may succeed.
        ends: no request can succeed.
        retry_after: seconds that the endpoint asked to wait.
        may_be_format: the endpoint may not take the `response_format` that was sent.
    """

    kind: ErrorKind
    message: str
    passes: bool = False
    ends: bool = False
    retry_after: float | None = None
    may_be_format: bool = False

    def as_error(self, attempts: int) -> CompletionError:
        tail = f" (after {attempts} attempts)" if attempts > 1 else ""
        return CompletionError(self.kind, self.message + tail)


def classify(error: Exception, seconds: float, key: str = "") -> Fault:
    """The meaning of one of `ATTEMPT_ERRORS`, with which a request ended after `seconds`.

    The key is taken out of the message, should the endpoint repeat it.
    """
    fault = _classify(error, seconds)
    return replace(fault, message=fault.message.replace(key, "***")) if key else fault


def _classify(error: Exception, seconds: float) -> Fault:
    if isinstance(error, openai.APITimeoutError | TimeoutError):
        return Fault("timeout", f"no answer after {seconds:.0f} s", passes=True)
    if isinstance(error, openai.APIStatusError):
        return _classify_status(error)
    if isinstance(error, openai.APIConnectionError):
        cause = error.__cause__ or error
        return Fault("connection", f"{type(cause).__name__}: {_short(str(cause))}", passes=True)
    if isinstance(error, ValueError):
        return Fault("server", f"the endpoint did not answer with JSON: {_short(str(error))}", passes=True)
    return Fault("server", _short(str(error)), passes=True)


def _classify_status(error: openai.APIStatusError) -> Fault:
    status = error.status_code
    text = f"HTTP {status}: {_short(_body_message(error))}"
    if status not in ENDING_STATUSES and status != 429 and _OVERFLOW.search(text):
        return Fault("context_overflow", text)
    if status == 429:
        quota = bool(_QUOTA.search(f"{error.code} {text}"))
        return Fault("rate_limit", text, passes=not quota, ends=quota, retry_after=_retry_after(error))
    may_be_format = status in FORMAT_STATUSES
    if status >= 500:
        return Fault("server", text, passes=True, retry_after=_retry_after(error), may_be_format=may_be_format)
    if status in PASSING_STATUSES:
        return Fault("server", text, passes=True)
    return Fault("request", text, ends=status in ENDING_STATUSES, may_be_format=may_be_format)


def _retry_after(error: openai.APIStatusError) -> float | None:
    """Seconds that the endpoint asks to wait; OpenAI's own header in milliseconds is the finer one."""
    headers, now = error.response.headers, time.time()
    milliseconds = parse_retry_after(headers.get("retry-after-ms"), now)
    return parse_retry_after(headers.get("retry-after"), now) if milliseconds is None else milliseconds / 1000


def _body_message(error: openai.APIStatusError) -> str:
    body: Any = error.body
    if isinstance(body, dict):
        inner = body.get("error", body)
        if isinstance(inner, dict):
            inner = inner.get("message") or inner.get("detail") or inner
        return str(inner)
    return str(body) if body else error.response.text


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= MESSAGE_CHARS else line[:MESSAGE_CHARS] + "..."
