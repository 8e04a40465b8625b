"""Read what an endpoint answered, whatever it is."""

from typing import Any

from qgrag.llm.endpoint.faults import Fault
from qgrag.llm.records import Reply, Request
from qgrag.llm.tokens import estimate_message_tokens, estimate_tokens


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
    text = _text(message.content)
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
    return reply, _unusable(reply, getattr(message, "refusal", None), request.sampling.max_tokens)


def _text(content: Any) -> str:
    """The content as one text; some endpoints send it as a list of parts."""
    parts = content if isinstance(content, list) else [content]
    texts = [part.get("text") if isinstance(part, dict) else part for part in parts]
    return "".join(text for text in texts if isinstance(text, str))


def _count(usage: Any, name: str, otherwise: int) -> int:
    count = getattr(usage, name, None)
    return count if type(count) is int and count >= 0 else otherwise


def _unusable(reply: Reply, refusal: Any, max_tokens: int) -> Fault | None:
    if refusal:
        return Fault("refusal", f"the model refused: {refusal}")
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
    return Fault("empty", f"the answer is empty (finish reason {reply.finish_reason!r})", passes=True)


def _without_message(response: Any) -> Fault:
    error = (getattr(response, "model_extra", None) or {}).get("error")
    if error:
        detail = error.get("message", error) if isinstance(error, dict) else error
        return Fault("server", f"the endpoint answered with an error: {detail}", passes=True)
    if hasattr(response, "choices"):
        return Fault("empty", "the answer has no choices with a message", passes=True)
    return Fault("server", f"the endpoint did not answer with a chat completion: {str(response)[:200]!r}", passes=True)
