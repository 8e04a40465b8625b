"""From a backend's reply to a completion: reasoning off, repetition found, JSON read and validated."""

import re

from pydantic import BaseModel

from qgrag.llm.parsing import parse_answer
from qgrag.llm.records import Completion, CompletionError, Reply

_TAG = r"(?:\w+:)?(?:think|thinking|thought|reasoning)"
_OPENED = re.compile(rf"\A\s*(?:<({_TAG})>.*?</\1>|\[({_TAG})\].*?\[/\2\]|◁({_TAG})▷.*?◁/\3▷)\s*", re.S | re.I)
_UNCLOSED = re.compile(rf"\A\s*<{_TAG}>(?!.*</{_TAG}>).*\Z", re.S | re.I)
_ONLY_CLOSED = re.compile(rf"\A(?:(?!</?{_TAG}>).)*</{_TAG}>[ \t]*(?=\n|\Z|[{{\[]|```)\s*", re.S | re.I)
_TAG_IS_QUOTED = re.compile(rf"[\"'`“‘«]\s*</{_TAG}>", re.I)

MAX_PERIOD = 200
MIN_REPEATS = 8
MIN_REPEATED_CHARS = 80


def interpret(reply: Reply, schema: type[BaseModel] | None, cached: bool = False) -> Completion:
    """What the reply amounts to. Never raises; a text is kept beside an error about it."""
    if reply.error is not None:
        return Completion(reply.text, error=reply.error, cached=cached)
    text = strip_reasoning(reply.text).strip()
    truncated = reply.finish_reason == "length"
    if not text:
        error = CompletionError("empty", "the answer is reasoning alone; raise llm.sampling.max_tokens")
        return Completion(error=error, truncated=truncated, cached=cached)
    repeats_from = find_repetition(text) if truncated else None
    if schema is None:
        if repeats_from is None:
            return Completion(text, truncated=truncated, cached=cached)
        error = CompletionError("repetition", "the model repeated itself until the token limit")
        return Completion(text[:repeats_from], error=error, truncated=True, cached=cached)
    parsed = parse_answer(text, schema, truncated)
    if parsed.value is not None:
        return Completion(
            text,
            parsed.value,
            dropped=parsed.dropped,
            repaired=parsed.repaired,
            truncated=truncated,
            cached=cached,
        )
    if repeats_from is not None:
        error = CompletionError("repetition", "the answer repeats itself until the token limit; give each item once")
    elif truncated:
        error = CompletionError("cut_off", f"the answer is cut off at the token limit; be shorter ({parsed.error})")
    else:
        error = CompletionError("invalid", parsed.error)
    return Completion(
        text, error=error, dropped=parsed.dropped, repaired=parsed.repaired, truncated=truncated, cached=cached
    )


def strip_reasoning(text: str) -> str:
    """The text without a reasoning block at its very start, whether or not its opening tag came through.

    A closing tag alone counts only where the answer goes on behind it on a new line or with JSON, and
    where the text does not start as JSON or quote the tag; tags further on are the author's and stay. A
    block that never closes is all there is: nothing is left.
    """
    if _UNCLOSED.match(text):
        return ""
    opened = _OPENED.match(text)
    if opened:
        return text[opened.end() :]
    if text.lstrip()[:1] in ("{", "[") or text.lstrip().startswith("```"):
        return text
    closed = _ONLY_CLOSED.match(text)
    if closed and not _TAG_IS_QUOTED.search(closed.group()):
        return text[closed.end() :]
    return text


def find_repetition(text: str) -> int | None:
    """Where a text starts to repeat itself until its end; None if it does not.

    That is, the text ends in at least `MIN_REPEATS` copies of a unit of at most `MAX_PERIOD` characters which
    together fill at least `MIN_REPEATED_CHARS`. The unit's first copy is not counted as repetition.
    O(MAX_PERIOD * length).
    """
    for period in range(1, min(MAX_PERIOD, len(text) // MIN_REPEATS) + 1):
        unit = text[-period:]
        needed = max(MIN_REPEATS, -(-MIN_REPEATED_CHARS // period))
        if not text.endswith(unit * needed):
            continue
        start = len(text) - period * needed
        while start >= period and text[start - period : start] == unit:
            start -= period
        return start + period
    return None
