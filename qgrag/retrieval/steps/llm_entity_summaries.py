"""Summaries of entities in the light of a query, by a language model (FG-RAG, section 3.3)."""

from collections.abc import Sequence

from qgrag.errors import ConfigError
from qgrag.llm.model import LanguageModel
from qgrag.llm.prompts import Prompts
from qgrag.llm.tokens import within_tokens
from qgrag.retrieval.steps.ask import ask


class LLMEntitySummaries:
    """An `EntitySummaries`: S_i of each E_i. A pair without descriptions is not asked about, and a failed
    request gives an empty summary.

    Args:
        max_description_tokens: length of the descriptions in the prompt, at most, by estimate; further ones are left
            out, so they should come best first.
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
        rows = [
            {
                "language": self.prompts.language,
                "query": query,
                "entity": entity,
                "questions": "\n".join(f"- {question}" for question in asked) or "- what the question asks",
                "descriptions": within_tokens((f"- {text}" for text in told), self.max_description_tokens),
            }
            if told
            else None
            for query, entity, told, asked in zip(queries, entities, descriptions, questions, strict=True)
        ]
        return [answer or "" for answer in ask(self.model, self.prompts["entity_summary"], rows, step=self.step)]
