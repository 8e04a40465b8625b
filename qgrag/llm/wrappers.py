"""Language models that stand before another one: one ends a run at its budget, one only adds up what it would ask."""

from typing import Generic, TypeVar

from qgrag.llm.cached_model import CachedLanguageModel
from qgrag.llm.errors import BudgetSpentError
from qgrag.llm.model import Batch, LanguageModel, StepEstimate
from qgrag.llm.records import Completion, CompletionError

ModelT = TypeVar("ModelT", bound=LanguageModel)

ANSWER_TOKENS = 100


class WrappedModel(LanguageModel, Generic[ModelT]):
    """All of a `LanguageModel` but its answers, as the model behind it has it.

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

    def forecast(self, batch: Batch, answer_tokens: int) -> StepEstimate:
        return self._model.forecast(batch, answer_tokens)


class StopAtBudget(WrappedModel[CachedLanguageModel]):
    """A `LanguageModel` that ends the run as soon as the budget leaves a request unsent.

    A step that goes on with part of its answers would store half the result of a chunk as the whole, or score a
    question that was never asked. The cache has every answer by the time the run ends.
    """

    def answer(self, batch: Batch) -> list[Completion]:
        """See `LanguageModel.answer`.

        Raises:
            LLMUnavailableError: the model cannot be used, or (`BudgetSpentError`) the budget is spent.
        """
        completions = self._model.answer(batch)
        unsent = sum(c.error is not None and c.error.kind == "budget" for c in completions)
        if unsent:
            raise BudgetSpentError(
                f"the budget is spent ({self._model.budget}), and {unsent} of {len(completions)} requests of step "
                f"{batch.step!r} were not sent; raise llm.max_calls or llm.max_tokens_total, and run the same again"
            )
        return completions


class DryRun(WrappedModel[LanguageModel]):
    """A `LanguageModel` that sends nothing: every answer is the error `budget`.

    A step that needs the answers of another is estimated by what it falls back on without them.

    Args:
        model: the one whose cache shows what need not be sent.
        answer_tokens: a guess at the tokens of one answer.
    """

    def __init__(self, model: LanguageModel, answer_tokens: int = ANSWER_TOKENS) -> None:
        super().__init__(model)
        self._answer_tokens = answer_tokens
        self._estimates: dict[str, StepEstimate] = {}

    @property
    def estimates(self) -> list[StepEstimate]:
        """One for each step, in the order in which they were first to be asked."""
        return list(self._estimates.values())

    def answer(self, batch: Batch) -> list[Completion]:
        """See `LanguageModel.answer`; nothing is sent."""
        estimate = self.forecast(batch, self._answer_tokens)
        if batch.conversations:
            known = self._estimates.get(batch.step)
            self._estimates[batch.step] = estimate if known is None else known + estimate
        return [Completion(error=CompletionError("budget", "not sent, this is a dry run"))] * len(batch.conversations)
