"""What an endpoint's failures mean: which may pass, which belong to one request, which end the run."""

import json
import re
import ssl
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import openai

from qgrag.llm.endpoint.client import proxy_of
from qgrag.llm.endpoint.keys import redact
from qgrag.llm.endpoint.pacing import parse_retry_after
from qgrag.llm.records import CompletionError, ErrorKind

ATTEMPT_ERRORS = (openai.APIError, TimeoutError, json.JSONDecodeError, UnicodeError)
"""What the client raises for one attempt; the last two for a body that is no JSON, or a header that is no ASCII."""

MESSAGE_CHARS = 400
FORMAT_STATUSES = frozenset({400, 415, 422, 500, 501})
PASSING_STATUSES = frozenset({408, 409, 425, 429})
ENDING_STATUSES = frozenset({401, 403, 404, 405})

PROXY_REMEDY = "correct or unset HTTP_PROXY, HTTPS_PROXY and ALL_PROXY, or add the host to NO_PROXY"

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
        remedy: what a user can do, where it is known from the failure.
    """

    kind: ErrorKind
    message: str
    passes: bool = False
    ends: bool = False
    retry_after: float | None = None
    may_be_format: bool = False
    remedy: str = ""

    def as_error(self, attempts: int) -> CompletionError:
        tail = f" (after {attempts} attempts)" if attempts > 1 else ""
        return CompletionError(self.kind, self.message + tail)


def classify(error: Exception, seconds: float, url: str = "") -> Fault:
    """The meaning of one of `ATTEMPT_ERRORS`, with which a request to `url` ended after `seconds`."""
    if isinstance(error, openai.APITimeoutError | TimeoutError):
        return Fault("timeout", f"no answer after {seconds:.0f} s", passes=True)
    if isinstance(error, openai.APIStatusError):
        return _classify_status(error)
    if isinstance(error, openai.APIConnectionError):
        return _classify_connection(error, url)
    if isinstance(error, ValueError):
        return Fault("server", f"the endpoint did not answer with JSON: {short(str(error))}", passes=True)
    return Fault("server", short(str(error)), passes=True)


def _classify_connection(error: openai.APIConnectionError, url: str) -> Fault:
    """Who is to blame for a connection that failed: a certificate, the scheme, a proxy, or the server."""
    causes = list(_causes(error))
    first = causes[1] if len(causes) > 1 else error
    text = f"{type(first).__name__}: {short(str(first))}"
    if any(isinstance(cause, ssl.SSLCertVerificationError) for cause in causes):
        remedy = "let SSL_CERT_FILE name the certificate of the authority that signed it, or correct the address"
        return Fault("connection", f"the server's certificate is not trusted ({text})", ends=True, remedy=remedy)
    if any(isinstance(cause, ssl.SSLError) for cause in causes):
        remedy = "write http:// in place of https:// if the server has no TLS, or correct the port"
        return Fault("connection", f"TLS failed ({text})", ends=True, remedy=remedy)
    proxy = proxy_of(url)
    if proxy and type(first).__name__ in ("ProxyError", "ConnectError", "ConnectTimeout"):
        return Fault("connection", f"the proxy {proxy} failed ({text})", passes=True, remedy=PROXY_REMEDY)
    return Fault("connection", text, passes=True)


def _causes(error: BaseException) -> Iterator[BaseException]:
    cause: BaseException | None = error
    while cause is not None:
        yield cause
        cause = cause.__cause__ or cause.__context__


def _classify_status(error: openai.APIStatusError) -> Fault:
    status = error.status_code
    if 300 <= status < 400:
        target = short(error.response.headers.get("location", "nowhere"))
        remedy = "if that is the server's true address, put it (up to /v1) in place of the base_url"
        return Fault("request", f"HTTP {status}: redirected to {target}", ends=True, remedy=remedy)
    if status == 407:
        return Fault("request", "HTTP 407: the proxy wants a name and password", ends=True, remedy=PROXY_REMEDY)
    text = f"HTTP {status}: {short(_body_message(error))}"
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


def short(text: str) -> str:
    """One line of at most `MESSAGE_CHARS` characters, without any key."""
    line = " ".join(redact(text).split())
    return line if len(line) <= MESSAGE_CHARS else line[:MESSAGE_CHARS] + "..."
