"""Read what an endpoint answered, whatever it is."""

import json
from typing import Any

from qgrag.llm.endpoint.faults import Fault, short
from qgrag.llm.records import Reply, Request
from qgrag.llm.tokens import estimate_message_tokens, estimate_tokens

TEXT_PARTS = frozenset({"text", "output_text", None})


def read_response(response: Any, request: Request, seconds: float) -> tuple[Reply, Fault | None]:
    """The reply, and what is wrong with it if it cannot be used.

    Token counts come from the endpoint, by estimate where it gives none. A reasoning field is no answer.

    Args:
        response: a `ChatCompletion`; or anything else that the client made of a body that is none.
        request: what was sent.
        seconds: that the answer took.
    """
    choices = getattr(response, "choices", None)
    choice: Any = choices[0] if isinstance(choices, list) and choices else None
    message: Any = getattr(choice, "message", None)
    if not hasattr(message, "content"):
        return Reply(seconds=seconds), _without_message(response)
    text, found = _text(message.content), ""
    if not text.strip():
        text, found = _without_text(message, structured=request.schema is not None)
    usage = getattr(response, "usage", None)
    completion_tokens = _count(usage, "completion_tokens", estimate_tokens(text))
    finish_reason = getattr(choice, "finish_reason", None)
    if not finish_reason and completion_tokens >= request.sampling.max_tokens:
        finish_reason = "length"
    reply = Reply(
        text=text.encode("utf-8", "replace").decode("utf-8"),
        finish_reason=finish_reason if isinstance(finish_reason, str) else "",
        prompt_tokens=_count(usage, "prompt_tokens", estimate_message_tokens(request.messages)),
        completion_tokens=completion_tokens,
        seconds=seconds,
    )
    return reply, _unusable(reply, getattr(message, "refusal", None), request.sampling.max_tokens, found)


def _text(content: Any) -> str:
    """The content as one text. Some endpoints send it as a list of parts; parts of reasoning are no answer."""
    parts = content if isinstance(content, list) else [content]
    texts = [
        (part.get("text") if part.get("type", "text") in TEXT_PARTS else None) if isinstance(part, dict) else part
        for part in parts
    ]
    return "".join(text for text in texts if isinstance(text, str))


def _without_text(message: Any, structured: bool) -> tuple[str, str]:
    """The answer of a message whose content has no text, and what the message has in place of an answer.

    Models that know tools answer a request for JSON with the arguments of a call.
    """
    calls = [_field(call, "function") for call in _list(_field(message, "tool_calls"))]
    calls += [_field(message, "function_call")] if _field(message, "function_call") else []
    arguments = [_field(call, "arguments") for call in calls]
    texts = [a if isinstance(a, str) else json.dumps(a) for a in arguments if a]
    if structured and texts:
        return (texts[0] if len(texts) == 1 else f"[{','.join(texts)}]"), ""
    if calls:
        names = ", ".join(str(_field(call, "name")) for call in calls)
        return "", f"the answer only calls the tool {short(names)!r}, though no tools were offered"
    kinds = sorted({str(part.get("type")) for part in _list(message.content) if isinstance(part, dict)})
    return "", f"the answer has only parts of type {short(', '.join(kinds))}" if kinds else ""


def _field(value: Any, name: str) -> Any:
    return value.get(name) if isinstance(value, dict) else getattr(value, name, None)


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _count(usage: Any, name: str, otherwise: int) -> int:
    count = getattr(usage, name, None)
    return count if type(count) is int and count >= 0 else otherwise


def _unusable(reply: Reply, refusal: Any, max_tokens: int, found: str) -> Fault | None:
    if refusal:
        return Fault("refusal", f"the model refused: {short(str(refusal))}")
    if reply.finish_reason == "content_filter":
        return Fault("refusal", "the endpoint's content filter stopped the answer")
    if reply.text.strip():
        return None
    if reply.finish_reason == "length":
        return Fault(
            "empty",
            f"all {max_tokens} tokens were used up without an answer (by reasoning?); "
            "raise llm.sampling.max_tokens or turn reasoning off",
        )
    nothing = found or f"the answer is empty (finish reason {short(reply.finish_reason)!r})"
    return Fault("empty", nothing, passes=True)


def _without_message(response: Any) -> Fault:
    error = (getattr(response, "model_extra", None) or {}).get("error")
    if error:
        detail = error.get("message", error) if isinstance(error, dict) else error
        return Fault("server", f"the endpoint answered with an error: {short(str(detail))}", passes=True)
    if hasattr(response, "choices"):
        return Fault("empty", "the answer has no choices with a message", passes=True)
    return Fault(
        "server", f"the endpoint answered with no chat completion: {short(str(response))[:200]!r}", passes=True
    )
