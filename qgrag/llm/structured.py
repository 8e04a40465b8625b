"""How an endpoint is asked for JSON that meets a schema: three ways, strictest first."""

import json
from collections.abc import Mapping
from typing import Any, Literal

from qgrag.llm.prompts import fill_turn
from qgrag.llm.records import Message, Request
from qgrag.llm.text import strip_reasoning

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


def ignores_format(text: str) -> bool:
    """Whether an answer that had to be a JSON object shows that the endpoint did not make it one."""
    answer = strip_reasoning(text).strip()
    return bool(answer) and not answer.startswith("{")


class Ladder:
    """The way that an endpoint takes each schema: found out by trying, the strictest first.

    A schema new to the endpoint starts where the last one was taken, since what refuses one form of
    request refuses it for all; a single schema may still need a lower rung, for a keyword that the
    endpoint does not know.

    Args:
        structured: `auto`, or the one way to use.
    """

    def __init__(self, structured: Literal["auto", "json_schema", "json_object", "prompt"]) -> None:
        self._fixed = structured != "auto"
        self._start: Rung = LADDER[0] if structured == "auto" else structured
        self._found: dict[str, Rung] = {}

    def rung(self, schema: Mapping[str, Any]) -> Rung:
        """Where to start, or what is known."""
        return self._found.get(_schema_key(schema), self._start)

    def is_known(self, schema: Mapping[str, Any]) -> bool:
        return self._fixed or _schema_key(schema) in self._found

    def below(self, schema: Mapping[str, Any], rung: Rung) -> Rung | None:
        """What to try after a refusal; None where nothing is left or the way is known."""
        position = LADDER.index(rung) + 1
        return None if self.is_known(schema) or position == len(LADDER) else LADDER[position]

    def settle(self, schema: Mapping[str, Any], rung: Rung) -> bool:
        """Remember that this way worked; returns whether it is less demanding than the start."""
        lower = rung != self._start
        if not self._found:
            self._start = rung
        self._found[_schema_key(schema)] = rung
        return lower


def _schema_key(schema: Mapping[str, Any]) -> str:
    return json.dumps(schema, sort_keys=True)
