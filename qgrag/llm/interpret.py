"""From a backend's reply to a completion: reasoning off, repetition found, JSON read and validated."""

from pydantic import BaseModel

from qgrag.llm.parsing import parse_answer
from qgrag.llm.records import Completion, CompletionError, Reply
from qgrag.llm.text import find_repetition, strip_reasoning


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
