"""Token counts by estimate, where the model's own tokenizer is out of reach."""

import unicodedata
from collections.abc import Iterable

from qgrag.llm.records import Message

CHARACTERS_PER_TOKEN = 4.0
MESSAGE_OVERHEAD = 4


def estimate_tokens(text: str) -> int:
    """About how many tokens a text has: one per character of a script without spaces, one per four other characters.

    >>> estimate_tokens("How many tokens are these?"), estimate_tokens("李华昨天来了")
    (7, 6)
    """
    wide = sum(unicodedata.east_asian_width(c) in "WF" for c in text)
    return wide + -int(-(len(text) - wide) // CHARACTERS_PER_TOKEN)


def estimate_message_tokens(messages: Iterable[Message]) -> int:
    """The same for a conversation, with what a chat template adds to each turn."""
    return sum(MESSAGE_OVERHEAD + estimate_tokens(m["content"]) for m in messages)


def within_tokens(lines: Iterable[str], max_tokens: int) -> str:
    """The first lines whose estimated tokens together are at most `max_tokens`, joined by line breaks; at least one."""
    kept: list[str] = []
    spent = 0
    for line in lines:
        spent += estimate_tokens(line) + 1
        if kept and spent > max_tokens:
            break
        kept.append(line)
    return "\n".join(kept)
