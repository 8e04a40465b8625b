"""The language model that every step asks, as the steps see it."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

from pydantic import BaseModel

from qgrag.llm.records import Completion, Conversation


@dataclass(frozen=True, slots=True)
class StepEstimate:
    """What a step would spend; nothing has been spent.

    Args:
        step: its name.
        calls: requests that would be sent.
        cache_hits: requests that the cache already answers.
        prompt_tokens: of the calls, by estimate.
        completion_tokens: the same.
    """

    step: str
    calls: int
    cache_hits: int
    prompt_tokens: int
    completion_tokens: int

    def __add__(self, other: "StepEstimate") -> "StepEstimate":
        return StepEstimate(
            self.step,
            self.calls + other.calls,
            self.cache_hits + other.cache_hits,
            self.prompt_tokens + other.prompt_tokens,
            self.completion_tokens + other.completion_tokens,
        )


def model_settings(model: "LanguageModel") -> dict[str, str]:
    """What a run records of a model: its name, and a fingerprint of what its answers depend on."""
    return {"name": model.name, "fingerprint": model.fingerprint}


@dataclass(frozen=True, slots=True)
class Batch:
    """What a step asks at once; see `LanguageModel.complete`."""

    conversations: Sequence[Conversation]
    schema: type[BaseModel] | None
    step: str
    owners: Sequence[str] = ()


class LanguageModel(ABC):
    """A batch of conversations in, a batch of outcomes out, in order."""

    @property
    @abstractmethod
    def name(self) -> str: ...

    @property
    @abstractmethod
    def fingerprint(self) -> str:
        """Changes whenever the same conversation may get another answer."""

    @property
    @abstractmethod
    def max_tokens(self) -> int:
        """Limit on one answer."""

    def complete(
        self,
        conversations: Sequence[Conversation],
        schema: type[BaseModel] | None = None,
        *,
        step: str,
        owners: Sequence[str] = (),
    ) -> list[Completion]:
        """Ask for an answer to each conversation.

        Args:
            conversations: B of them; equal ones are asked once.
            schema: what the answers have to be; None for plain text.
            step: name under which the spending is counted (see `qgrag.llm.usage.measure`).
            owners: B ids of the chunks or queries that the conversations belong to; empty for none.

        Returns:
            B completions. Each has an error, or a text and, with a schema, a valid value.

        Raises:
            LLMUnavailableError: the model cannot be used at all. The cache has what was answered until then.
            ValueError: there are owners, but not B of them.
        """
        if owners and len(owners) != len(conversations):
            raise ValueError(f"{len(conversations)} conversations but {len(owners)} owners; give one for each")
        return self.answer(Batch(conversations, schema, step, owners))

    def estimate(
        self,
        conversations: Sequence[Conversation],
        schema: type[BaseModel] | None = None,
        *,
        step: str,
        answer_tokens: int,
    ) -> StepEstimate:
        """What `complete` would spend if an answer has `answer_tokens` tokens. Sends nothing."""
        return self.forecast(Batch(conversations, schema, step), answer_tokens)

    @abstractmethod
    def answer(self, batch: Batch) -> list[Completion]:
        """What `complete` does, for a checked batch."""

    @abstractmethod
    def forecast(self, batch: Batch, answer_tokens: int) -> StepEstimate:
        """What `estimate` does."""
