"""Models whose chat template knows no system turn: it goes before the first turn of the user."""

import re
from collections.abc import Sequence

from qgrag.llm.records import Message

_REFUSAL = re.compile(
    r"system (?:role|messages?|prompts?) (?:is |are )?(?:not|un)\s?supported|not support (?:the )?system|"
    r"conversation roles must alternate",
    re.I,
)


def refuses_system_turn(error: str) -> bool:
    """Whether an error of a chat template, or of a server that uses one, is about a system turn."""
    return bool(_REFUSAL.search(error))


def without_system_turn(messages: Sequence[Message]) -> list[Message]:
    """The same conversation, a leading system turn joined to the turn after it."""
    if len(messages) < 2 or messages[0]["role"] != "system":
        return list(messages)
    first = messages[1]
    return [{**first, "content": f"{messages[0]['content']}\n\n{first['content']}"}, *messages[2:]]
