"""A stand-in for a language model that adds up what would be asked, and asks nothing."""

from collections.abc import Sequence

from pydantic import BaseModel

from qgrag.llm.model import LanguageModel, StepEstimate
from qgrag.llm.records import Completion, CompletionError, Conversation
from qgrag.llm.wrapped_model import WrappedModel

ANSWER_TOKENS = 100


class DryRun(WrappedModel[LanguageModel]):
    """A `LanguageModel` whose every answer is the error `budget`.

    Steps that follow from another's answers are estimated by what they fall back on without any.

    Args:
        model: whose cache is looked into.
        answer_tokens: of one answer, a guess.
    """

    def __init__(self, model: LanguageModel, answer_tokens: int = ANSWER_TOKENS) -> None:
        super().__init__(model)
        self._answer_tokens = answer_tokens
        self._estimates: dict[str, StepEstimate] = {}

    @property
    def estimates(self) -> list[StepEstimate]:
        """By step, in the order in which they were first to be asked."""
        return list(self._estimates.values())

    def complete(
        self,
        conversations: Sequence[Conversation],
        schema: type[BaseModel] | None = None,
        *,
        step: str,
        owners: Sequence[str] = (),
    ) -> list[Completion]:
        """See `LanguageModel.complete`; nothing is sent."""
        estimate = self.estimate(conversations, schema, step=step, answer_tokens=self._answer_tokens)
        if conversations:
            known = self._estimates.get(step)
            self._estimates[step] = estimate if known is None else known + estimate
        return [Completion(error=CompletionError("budget", "not sent, this is a dry run"))] * len(conversations)
