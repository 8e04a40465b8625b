"""The base of the extraction steps that ask a language model."""

import hashlib
from typing import ClassVar

from qgrag.llm.model import LanguageModel
from qgrag.llm.prompts import Prompts


class ExtractionStep:
    """A step with its model and prompts.

    Args:
        model: answers the prompts.
        prompts: the texts that ask; None for the package's own, which answer in the language of the text.
    """

    step: ClassVar[str]
    prompt_names: ClassVar[tuple[str, ...]]

    def __init__(self, model: LanguageModel, prompts: Prompts | None = None) -> None:
        self.model = model
        self.prompts = prompts or Prompts()

    @property
    def settings(self) -> str:
        """Everything else that changes the result, as one string."""
        return ""

    @property
    def fingerprint(self) -> str:
        """Changes with the model, its sampling, the prompts, the language and the step's settings."""
        parts = [self.model.fingerprint, self.prompts.language, self.settings]
        parts += [self.prompts[name].fingerprint for name in self.prompt_names]
        return f"llm-{self.step}-{hashlib.blake2b(repr(parts).encode(), digest_size=8).hexdigest()}"
