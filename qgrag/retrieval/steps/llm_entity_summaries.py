"""Summaries of entities in the light of a query, by a language model (FG-RAG, section 3.3)."""

from collections.abc import Sequence

from qgrag.errors import ConfigError
from qgrag.llm.model import LanguageModel
from qgrag.llm.prompts import Prompts
from qgrag.llm.tokens import within_tokens


class LLMEntitySummaries:
    """An `EntitySummaries`: S_i of each E_i. A pair without descriptions is not asked about, and a failed
    request gives an empty summary.

    Args:
        max_description_tokens: descriptions beyond so many tokens, by estimate, are left out; they should
            come best first.
    """

    step = "entity_summaries"

    def __init__(
        self, model: LanguageModel, prompts: Prompts | None = None, max_description_tokens: int = 4000
    ) -> None:
        if max_description_tokens < 1:
            raise ConfigError(f"max_description_tokens must be at least 1, got {max_description_tokens}")
        self.model = model
        self.prompts = prompts or Prompts()
        self.max_description_tokens = max_description_tokens

    def __call__(
        self,
        queries: Sequence[str],
        entities: Sequence[str],
        descriptions: Sequence[Sequence[str]],
        questions: Sequence[Sequence[str]],
    ) -> list[str]:
        prompt = self.prompts["entity_summary"]
        summaries = [""] * len(queries)
        asked = [i for i in range(len(queries)) if descriptions[i]]
        completions = self.model.complete(
            [
                prompt.fill(
                    language=self.prompts.language,
                    query=queries[i],
                    entity=entities[i],
                    questions="\n".join(f"- {q}" for q in questions[i]) or "- what the question asks",
                    descriptions=within_tokens((f"- {d}" for d in descriptions[i]), self.max_description_tokens),
                )
                for i in asked
            ],
            step=self.step,
            owners=[queries[i] for i in asked],
        )
        for i, completion in zip(asked, completions, strict=True):
            if completion.error is None:
                summaries[i] = completion.text
        return summaries
