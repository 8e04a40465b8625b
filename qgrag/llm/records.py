"""What goes to a language model and what comes back."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypedDict, TypeVar

from pydantic import BaseModel

from qgrag.llm.config import Sampling


class Message(TypedDict):
    """One turn of a conversation, in the form that chat endpoints take."""

    role: Literal["system", "user", "assistant"]
    content: str


Conversation = Sequence[Message]
SchemaT = TypeVar("SchemaT", bound=BaseModel)

ErrorKind = Literal[
    "rate_limit",
    "server",
    "timeout",
    "connection",
    "request",
    "context_overflow",
    "refusal",
    "empty",
    "cut_off",
    "repetition",
    "invalid",
    "budget",
]


@dataclass(frozen=True, slots=True)
class CompletionError:
    """Why a request has no usable answer.

    Args:
        kind: `request`, `rate_limit`, `server`, `timeout` and `connection` come from the endpoint; the others
            are about the answer itself; `budget` means that it was not sent.
        message: what happened, for people.
    """

    kind: ErrorKind
    message: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.message}"


@dataclass(frozen=True, slots=True)
class Request:
    """One conversation with the parameters that belong to it.

    Args:
        messages: the turns, oldest first.
        sampling: parameters of generation.
        schema: JSON schema that the answer has to meet, None for plain text.
        owner: the chunk or query that it is for; named in logs and errors, not part of the cache key.
    """

    messages: tuple[Message, ...]
    sampling: Sampling
    schema: Mapping[str, Any] | None = None
    owner: str = ""


@dataclass(frozen=True, slots=True)
class Reply:
    """What a backend got for one request, unparsed.

    Args:
        text: the content, without any separate reasoning field.
        finish_reason: `stop`, `length`, or whatever else the backend says.
        seconds: from sending to answer, without waiting for a free slot.
        retries: attempts before this one.
    """

    text: str = ""
    finish_reason: str = ""
    prompt_tokens: int = 0
    completion_tokens: int = 0
    seconds: float = 0.0
    retries: int = 0
    error: CompletionError | None = None


@dataclass(frozen=True, slots=True)
class Completion:
    """The outcome of one request: an error, or a text and, where a schema was asked for, a valid value.

    Args:
        text: the answer without a leading reasoning block; kept beside an error for inspection.
        value: an instance of the schema; None without one.
        error: why there is no usable answer.
        dropped: items of the value's lists that did not validate and were left out.
        repaired: the text was not valid JSON as it came.
        truncated: the answer ends at the token limit.
        asked_again: further requests that it took to get a valid value.
        cached: the answer came from the cache.
    """

    text: str = ""
    value: BaseModel | None = None
    error: CompletionError | None = None
    dropped: int = 0
    repaired: bool = False
    truncated: bool = False
    asked_again: int = 0
    cached: bool = False

    def parsed(self, schema: type[SchemaT]) -> SchemaT | None:
        """The value as an instance of the schema that was asked for; None beside an error."""
        return self.value if isinstance(self.value, schema) else None
