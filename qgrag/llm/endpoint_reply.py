"""Read what an endpoint answered, whatever it is."""

from typing import Any

from qgrag.llm.endpoint_errors import Fault
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
    if not isinstance(choices, list) or not choices or getattr(choices[0], "message", None) is None:
        return Reply(seconds=seconds), _without_choices(response)
    choice = choices[0]
    message = choice.message
    text = message.content if isinstance(message.content, str) else ""
    finish_reason = choice.finish_reason or ""
    usage = getattr(response, "usage", None)
    prompt_tokens = getattr(usage, "prompt_tokens", None)
    completion_tokens = getattr(usage, "completion_tokens", None)
    reply = Reply(
        text=text.encode("utf-8", "replace").decode("utf-8"),
        finish_reason=finish_reason,
        prompt_tokens=estimate_message_tokens(request.messages) if prompt_tokens is None else prompt_tokens,
        completion_tokens=estimate_tokens(text) if completion_tokens is None else completion_tokens,
        seconds=seconds,
    )
    return reply, _unusable(reply, getattr(message, "refusal", None), request.sampling.max_tokens)


def _unusable(reply: Reply, refusal: str | None, max_tokens: int) -> Fault | None:
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


def _without_choices(response: Any) -> Fault:
    error = (getattr(response, "model_extra", None) or {}).get("error")
    if error:
        detail = error.get("message", error) if isinstance(error, dict) else error
        return Fault("server", f"the endpoint answered with an error: {detail}", passes=True)
    if hasattr(response, "choices"):
        return Fault("empty", "the answer has no choices", passes=True)
    return Fault("server", f"the endpoint did not answer with a chat completion: {str(response)[:200]!r}", passes=True)
