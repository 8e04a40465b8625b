"""Errors that end a whole run; what goes wrong with one request stands in its `Completion`."""

from qgrag.errors import QgragError


class LLMUnavailableError(QgragError, RuntimeError):
    """The endpoint cannot be used at all: unreachable, no such model, or the key was refused."""


class BudgetSpentError(LLMUnavailableError):
    """The calls or tokens that the user allowed are spent; finished work is kept."""


class PromptError(QgragError, ValueError):
    """A prompt file is missing, has no user turn, or its placeholders are not those that its step fills."""
