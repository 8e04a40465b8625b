"""What an endpoint wants a request to look like, learnt from what it refuses."""

import json
import logging
from collections.abc import Mapping
from typing import Any, Literal

import openai

from qgrag.llm.endpoint.faults import short
from qgrag.llm.interpret import strip_reasoning
from qgrag.llm.structured import LADDER, Rung, refuses_system_turn, without_system_turn

logger = logging.getLogger(__name__)

OPTIONAL_FIELDS = frozenset({"temperature", "top_p", "seed"})
UNSUPPORTED = frozenset({"unsupported_value", "unsupported_parameter"})


class RequestForm:
    """Shared by all requests to one endpoint: what one of them found out holds for those after it.

    Newer OpenAI models call the token limit `max_completion_tokens` and take no temperature but their own; some
    models' templates know no system turn.
    """

    def __init__(self) -> None:
        self._left_out: set[str] = set()
        self._newer_limit = False
        self._no_system_turn = False

    def apply(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """A request's body, in the form that the endpoint is known to take."""
        form = {name: value for name, value in body.items() if name not in self._left_out}
        if self._newer_limit:
            form["max_completion_tokens"] = form.pop("max_tokens")
        if self._no_system_turn:
            form["messages"] = without_system_turn(form["messages"])
        return form

    def learn(self, error: openai.APIStatusError) -> None:
        """Take note of what a refusal asks for."""
        text = str(error)
        if "max_completion_tokens" in text:
            self._newer_limit = True
        elif refuses_system_turn(text):
            self._no_system_turn = True
        elif error.code in UNSUPPORTED and error.param in OPTIONAL_FIELDS and error.param not in self._left_out:
            self._left_out.add(error.param)
            logger.warning("the endpoint refuses the field %s and uses its own value: %s", error.param, short(text))


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


def ignores_format(text: str) -> bool:
    """Whether an answer that had to be a JSON object shows that the endpoint did not make it one."""
    answer = strip_reasoning(text).strip()
    return bool(answer) and not answer.startswith("{")
