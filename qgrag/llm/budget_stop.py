"""A run stops where its budget is spent, in place of results with holes."""

from collections.abc import Sequence

from pydantic import BaseModel

from qgrag.llm.cached_model import CachedLanguageModel
from qgrag.llm.errors import BudgetSpentError
from qgrag.llm.records import Completion, Conversation
from qgrag.llm.wrapped_model import WrappedModel


class StopAtBudget(WrappedModel[CachedLanguageModel]):
    """A `LanguageModel` that ends the run as soon as a request is not sent for want of budget.

    A step that goes on with part of its answers would store a chunk's half result as its whole, or score a question
    that was never asked.

    Args:
        model: who is asked; its cache has every answer by the time the run ends.
    """

    def complete(
        self,
        conversations: Sequence[Conversation],
        schema: type[BaseModel] | None = None,
        *,
        step: str,
        owners: Sequence[str] = (),
    ) -> list[Completion]:
        """See `LanguageModel.complete`.

        Raises:
            LLMUnavailableError: the model cannot be used, or (`BudgetSpentError`) the budget is spent.
        """
        completions = self._model.complete(conversations, schema, step=step, owners=owners)
        unsent = sum(c.error is not None and c.error.kind == "budget" for c in completions)
        if unsent:
            raise BudgetSpentError(
                f"the budget is spent ({self._model.budget}), with {unsent} of {len(completions)} requests of step "
                f"{step!r} not sent"
            )
        return completions
