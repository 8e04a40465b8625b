"""The steps of each retriever that a language model can take in place of rules."""

from typing import Any

from qgrag.extraction.llm_entity_questions import LLMEntityQuestions
from qgrag.extraction.llm_entity_summaries import LLMEntitySummaries
from qgrag.extraction.llm_implicit_nodes import LLMImplicitNodes
from qgrag.extraction.llm_query_entities import LLMQueryEntities
from qgrag.llm.model import LanguageModel
from qgrag.llm.prompts import Prompts


def llm_steps(retriever: str, config: Any, model: LanguageModel, prompts: Prompts | None = None) -> dict[str, Any]:
    """Keyword arguments for the retriever of this name; empty where the method has no such step.

    Args:
        retriever: its registered name.
        config: its configuration.
        model: who is asked.
        prompts: what it is asked with; None for the package's own.
    """
    if retriever == "dual":
        steps: dict[str, Any] = {"entities": LLMQueryEntities(model, prompts)}
        if config.implicit_nodes:
            steps["implicit"] = LLMImplicitNodes(model, prompts, config.implicit_nodes)
        return steps
    if retriever == "fg":
        return {
            "entities": LLMQueryEntities(model, prompts),
            "questions": LLMEntityQuestions(model, prompts, config.questions),
            "summarise": LLMEntitySummaries(model, prompts),
        }
    if retriever in ("qmkgf", "kg"):
        return {"entities": LLMQueryEntities(model, prompts)}
    if retriever in ("rerank", "ensemble"):
        return {"model": model, "prompts": prompts}
    return {}
