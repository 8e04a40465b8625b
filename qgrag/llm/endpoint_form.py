"""What an endpoint wants a request to look like, learnt from what it refuses."""

import logging
from collections.abc import Mapping
from typing import Any

import openai

from qgrag.llm.system_turn import refuses_system_turn, without_system_turn

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
        """A request's body, as far as known in the form that the endpoint takes."""
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
            logger.warning("the endpoint takes no %s of ours and uses its own: %s", error.param, text)
