"""What the extraction steps that ask a language model are made of."""

import hashlib
from typing import ClassVar

from qgrag.llm.model import LanguageModel
from qgrag.llm.prompts import Prompts


class ExtractionStep:
    """A step with its model and prompts.

    Args:
        model: who is asked.
        prompts: the texts to ask with; None for those of the package in the text's own language.
    """

    step: ClassVar[str]
    prompt_names: ClassVar[tuple[str, ...]]

    def __init__(self, model: LanguageModel, prompts: Prompts | None = None) -> None:
        self.model = model
        self.prompts = prompts or Prompts()

    @property
    def settings(self) -> str:
        """Whatever else decides on the result."""
        return ""

    @property
    def fingerprint(self) -> str:
        """Changes with the model, its sampling, the prompts, the language and the step's settings."""
        parts = [self.model.fingerprint, self.prompts.language, self.settings]
        parts += [self.prompts[name].fingerprint for name in self.prompt_names]
        return f"llm-{self.step}-{hashlib.blake2b(repr(parts).encode(), digest_size=8).hexdigest()}"
