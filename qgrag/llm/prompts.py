"""Prompts: one text file per step, with declared placeholders. A file of the user can replace each."""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Literal, cast

from qgrag.llm.errors import PromptError
from qgrag.llm.records import Message

Role = Literal["system", "user", "assistant"]

PLACEHOLDERS: Mapping[str, frozenset[str]] = {
    "pairs": frozenset({"language", "count", "title", "text"}),
    "pairs_more": frozenset({"count"}),
    "triples": frozenset({"language", "title", "text"}),
    "entities": frozenset({"language", "title", "text"}),
    "entities_more": frozenset(),
    "query_entities": frozenset({"query"}),
    "implicit_nodes": frozenset({"count", "query", "nodes", "triples"}),
    "entity_questions": frozenset({"language", "count", "query", "entity"}),
    "entity_summary": frozenset({"language", "query", "entity", "questions", "descriptions"}),
    "answer_short": frozenset({"language", "unknown", "query", "evidence"}),
    "answer_long": frozenset({"language", "unknown", "query", "evidence"}),
    "answer_without_evidence_short": frozenset({"language", "query"}),
    "answer_without_evidence_long": frozenset({"language", "query"}),
    "judge_correct": frozenset({"query", "reference", "answer"}),
    "judge_pair": frozenset({"query", "first", "second"}),
    "judge_subgraph": frozenset({"query", "triples"}),
    "qfs_users": frozenset({"language", "users", "tasks", "overview"}),
    "qfs_questions": frozenset({"language", "count", "user", "task", "overview"}),
    "json_format": frozenset({"schema"}),
    "ask_again": frozenset({"error"}),
}
"""What each prompt's step fills in; a file has to use exactly these."""

FIXED = frozenset({"json_format", "ask_again"})
"""Prompts that belong to no step: how an endpoint is asked for JSON, and for a better answer."""

REPLACEABLE = tuple(name for name in PLACEHOLDERS if name not in FIXED)

FROM_DOCUMENTS = frozenset(
    {"title", "text", "nodes", "triples", "entity", "descriptions", "evidence", "reference", "answer"}
    | {"first", "second", "overview"}
)
"""Placeholders for text that comes from documents, or from answers about them. The package's prompts put it between
`<data>` and `</data>` and say that it holds no instructions."""

_DATA_TAG = re.compile(r"<\s*(/?)\s*data\s*>", re.I)
_SECTION = re.compile(r"^=== (system|user|assistant) ===[ \t]*$", re.M)


@dataclass(frozen=True)
class PromptConfig:
    """What a user decides about the prompts.

    Args:
        language: the language that answers and extractions are written in, by its name; empty: that of the
            text.
        files: name of a step's prompt to a file that replaces the one that comes with the package.
    """

    language: str = ""
    files: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        unknown = sorted(set(self.files) - set(REPLACEABLE))
        if unknown:
            raise PromptError(
                f"prompts.files: no step has a prompt named {unknown[0]!r}; there are {', '.join(REPLACEABLE)}"
            )


@dataclass(frozen=True, slots=True)
class Prompt:
    """A conversation with placeholders: a system turn or none, worked examples or none, the user turn to answer."""

    name: str
    turns: tuple[tuple[Role, Template], ...]

    def fill(self, **values: object) -> list[Message]:
        """The messages, with every placeholder replaced. No value can end a `<data>` part: its own tags are spaced."""
        safe = {name: _DATA_TAG.sub(r"< \1data>", str(value)) for name, value in values.items()}
        return [{"role": role, "content": turn.substitute(safe).strip()} for role, turn in self.turns]

    @property
    def text(self) -> str:
        """The fixed wording of all turns. A model may repeat it, although no document says it."""
        return "\n".join(turn.template for _, turn in self.turns)

    @property
    def example_answers(self) -> list[str]:
        """The answers of the worked examples."""
        return [turn.template for role, turn in self.turns if role == "assistant"]

    @property
    def fingerprint(self) -> str:
        """16 hex digits over roles and texts."""
        text = "\x00".join(f"{role}\x00{turn.template}" for role, turn in self.turns)
        return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


class Prompts:
    """The prompts of a run: the package's, or the files that replace them."""

    def __init__(self, config: PromptConfig | None = None) -> None:
        self.config = config or PromptConfig()

    def __getitem__(self, name: str) -> Prompt:
        """Raises:
        PromptError: the file that replaces the prompt cannot be used.
        """
        path = self.config.files.get(name)
        return load_prompt(name) if path is None else read_prompt(name, Path(path))

    @property
    def language(self) -> str:
        """The sentence that says which language to write in."""
        if self.config.language:
            return f"Write in {self.config.language}, whatever the language of the text."
        return "Write in the language of the text; do not translate."


@cache
def load_prompt(name: str) -> Prompt:
    """A prompt that comes with the package."""
    return parse_prompt(name, files("qgrag.llm").joinpath("prompts", f"{name}.txt").read_text("utf-8"), name)


def read_prompt(name: str, path: Path) -> Prompt:
    """A user's file in place of the prompt `name`.

    Raises:
        PromptError: it cannot be read, or does not have the turns and placeholders that its step needs.
    """
    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise PromptError(f"prompt {name!r}: cannot read {path}: {error}") from error
    return parse_prompt(name, text, str(path))


def parse_prompt(name: str, text: str, where: str) -> Prompt:
    """Split a prompt file at its lines `=== system ===`, `=== user ===` and `=== assistant ===`; check the turns."""
    pieces = _SECTION.split(text)
    roles, bodies = cast(list[Role], pieces[1::2]), pieces[2::2]
    if pieces[0].strip() or not roles:
        raise PromptError(f"prompt {where}: it has to start with a line '=== system ===' or '=== user ==='")
    if roles[-1] != "user":
        raise PromptError(f"prompt {where}: the last turn has to be the user's, not the {roles[-1]}'s")
    turns = tuple((role, Template(body)) for role, body in zip(roles, bodies, strict=True))
    for _, turn in turns:
        if not turn.is_valid():
            raise PromptError(f"prompt {where}: a '$' that starts no placeholder has to be written '$$'")
    found = {identifier for _, turn in turns for identifier in turn.get_identifiers()}
    if unknown := sorted(found - PLACEHOLDERS[name]):
        raise PromptError(f"prompt {where}: nothing fills ${{{unknown[0]}}}; this step has {_listed(name)}")
    if missing := sorted(PLACEHOLDERS[name] - found):
        raise PromptError(f"prompt {where}: ${{{missing[0]}}} is missing; this step needs {_listed(name)}")
    return Prompt(name, turns)


def fill_turn(name: str, **values: object) -> str:
    """The only turn of one of the package's prompts, filled."""
    return load_prompt(name).fill(**values)[-1]["content"]


def _listed(name: str) -> str:
    return ", ".join(f"${{{p}}}" for p in sorted(PLACEHOLDERS[name])) or "no placeholders"
