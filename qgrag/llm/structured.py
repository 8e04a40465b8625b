"""How an endpoint is asked for JSON that meets a schema: three ways, strictest first."""

import json
from collections.abc import Mapping
from typing import Any, Literal

from qgrag.llm.prompts import fill_turn
from qgrag.llm.records import Message, Request

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


def next_rung(rung: Rung) -> Rung | None:
    """The next less demanding way, None after the last."""
    position = LADDER.index(rung) + 1
    return LADDER[position] if position < len(LADDER) else None
