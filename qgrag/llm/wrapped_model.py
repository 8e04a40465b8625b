"""What language models that stand before another one share: whose they are, and what asking would spend."""

from collections.abc import Sequence
from typing import Generic, TypeVar

from pydantic import BaseModel

from qgrag.llm.model import LanguageModel, StepEstimate
from qgrag.llm.records import Conversation

ModelT = TypeVar("ModelT", bound=LanguageModel)


class WrappedModel(Generic[ModelT]):
    """All of a `LanguageModel` but `complete`, as the model behind it has it.

    Args:
        model: the one behind.
    """

    def __init__(self, model: ModelT) -> None:
        self._model = model

    @property
    def name(self) -> str:
        return self._model.name

    @property
    def fingerprint(self) -> str:
        return self._model.fingerprint

    @property
    def max_tokens(self) -> int:
        return self._model.max_tokens

    def estimate(
        self,
        conversations: Sequence[Conversation],
        schema: type[BaseModel] | None = None,
        *,
        step: str,
        answer_tokens: int,
    ) -> StepEstimate:
        """See `LanguageModel.estimate`."""
        return self._model.estimate(conversations, schema, step=step, answer_tokens=answer_tokens)
