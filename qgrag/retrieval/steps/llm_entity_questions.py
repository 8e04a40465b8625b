"""What a user might ask about an entity around a query, by a language model (FG-RAG, section 3.3)."""

from collections.abc import Sequence

from pydantic import BaseModel

from qgrag.errors import ConfigError
from qgrag.extraction.grounding import one_line
from qgrag.llm.model import LanguageModel
from qgrag.llm.prompts import Prompts
from qgrag.names.forms import without_punctuation
from qgrag.retrieval.steps.ask import ask


class GeneratedQuestions(BaseModel):
    questions: list[str]


class LLMEntityQuestions:
    """An `EntityQuestions`; a failed request gives no questions.

    Args:
        count: m, questions per entity, at most.
    """

    step = "entity_questions"

    def __init__(self, model: LanguageModel, prompts: Prompts | None = None, count: int = 5) -> None:
        if count < 1:
            raise ConfigError(f"count must be at least 1, got {count}")
        self.model = model
        self.prompts = prompts or Prompts()
        self.count = count

    def __call__(self, queries: Sequence[str], entities: Sequence[str]) -> list[list[str]]:
        language = self.prompts.language
        rows = [
            {"language": language, "count": self.count, "query": query, "entity": entity}
            for query, entity in zip(queries, entities, strict=True)
        ]
        answers = ask(self.model, self.prompts["entity_questions"], rows, step=self.step, schema=GeneratedQuestions)
        return [_distinct(a.questions)[: self.count] if a else [] for a in answers]


def _distinct(questions: Sequence[str]) -> list[str]:
    kept: dict[str, str] = {}
    for question in map(one_line, questions):
        key = without_punctuation(question[:200])
        if key:
            kept.setdefault(key, question)
    return list(kept.values())
