"""How an endpoint is asked for JSON that meets a schema: three ways, strictest first."""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from qgrag.llm.prompts import fill_turn
from qgrag.llm.records import Message, Request

_REFUSAL = re.compile(
    r"system (?:role|messages?|prompts?) (?:is |are )?(?:not|un)\s?supported|not support (?:the )?system|"
    r"conversation roles must alternate",
    re.I,
)

Rung = Literal["json_schema", "json_object", "prompt"]
LADDER: tuple[Rung, ...] = ("json_schema", "json_object", "prompt")


def with_format(request: Request, rung: Rung) -> tuple[list[Message], dict[str, Any] | None]:
    """The messages and the `response_format` of a structured request.

    `json_schema` is OpenAI's own form. `json_object` carries the schema beside the type, as llama.cpp
    takes it, and in words for endpoints that ignore it there. `prompt` has the words alone.
    """
    messages = list(request.messages)
    if request.schema is None:
        return messages, None
    if rung == "json_schema":
        form = {"name": "answer", "strict": True, "schema": request.schema}
        return messages, {"type": "json_schema", "json_schema": form}
    messages[-1] = {**messages[-1], "content": messages[-1]["content"] + "\n\n" + describe_schema(request.schema)}
    if rung == "json_object":
        return messages, {"type": "json_object", "schema": request.schema}
    return messages, None


def describe_schema(schema: Mapping[str, Any]) -> str:
    """The instruction that stands in for a response format."""
    return fill_turn("json_format", schema=json.dumps(schema, ensure_ascii=False, separators=(",", ":")))


def refuses_system_turn(error: str) -> bool:
    """Whether an error of a chat template, or of a server that uses one, is about a system turn."""
    return bool(_REFUSAL.search(error))


def without_system_turn(messages: Sequence[Message]) -> list[Message]:
    """The same conversation, a leading system turn joined to the turn after it."""
    if len(messages) < 2 or messages[0]["role"] != "system":
        return list(messages)
    first = messages[1]
    return [{**first, "content": f"{messages[0]['content']}\n\n{first['content']}"}, *messages[2:]]
