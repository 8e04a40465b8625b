"""Chats: lines that each begin with a speaker's name and a colon."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

_LINE = re.compile(r"^[ \t]*(?P<speaker>[^\W\d_][\w .'’-]{0,39}?)[ \t]*[:：](?![/\d])[ \t]*(?P<said>\S.*)$", re.M)
_VALUE = re.compile(r"^[\d\s_:./-]+$")
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")
MIN_SHARE = 0.5


@dataclass(frozen=True, slots=True)
class Turn:
    """One line: `text[speaker_start:speaker_end]` is its speaker, `text[start:end]` what was said."""

    speaker: str
    speaker_start: int
    speaker_end: int
    start: int
    end: int


def chat_turns(text: str) -> list[Turn]:
    """The turns of a chat, in order; a header whose content is a number or a time is none.

    Empty where less than half of the lines are turns, or no speaker speaks twice, as in a list of fields.
    """
    turns = [
        Turn(
            found["speaker"],
            found.start("speaker"),
            found.end("speaker"),
            found.start("said"),
            found.end("said"),
        )
        for found in _LINE.finditer(text)
        if not _VALUE.match(found["said"])
    ]
    lines = sum(1 for line in text.splitlines() if line.strip())
    speakers = {turn.speaker for turn in turns}
    return turns if len(turns) >= MIN_SHARE * lines and len(speakers) < len(turns) else []


def spoken_name(speaker: str) -> str:
    """A speaker's label as a name: 'JenniferMoore' -> 'Jennifer Moore'."""
    return _CAMEL.sub(" ", speaker)


def speakers(turns: Sequence[Turn]) -> list[str]:
    """Distinct speakers as names, in order of their first turn."""
    return list(dict.fromkeys(spoken_name(turn.speaker) for turn in turns))
