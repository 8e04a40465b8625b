"""The steps of each retriever that a language model can take in place of rules."""

from collections.abc import Callable
from typing import Any

from qgrag.llm.model import LanguageModel
from qgrag.llm.prompts import Prompts
from qgrag.retrieval.steps.llm_entity_questions import LLMEntityQuestions
from qgrag.retrieval.steps.llm_entity_summaries import LLMEntitySummaries
from qgrag.retrieval.steps.llm_implicit_nodes import LLMImplicitNodes
from qgrag.retrieval.steps.llm_query_entities import LLMQueryEntities

MakeStep = Callable[[LanguageModel, Prompts | None], Any]


def llm_steps(retriever: str, config: Any) -> dict[str, MakeStep]:
    """What makes each keyword argument that lets a model take a step; empty where the method has no such step.

    Args:
        retriever: its registered name.
        config: its configuration.
    """
    if retriever == "dual":
        steps: dict[str, MakeStep] = {"entities": LLMQueryEntities}
        if config.implicit_nodes:
            steps["implicit"] = lambda model, prompts: LLMImplicitNodes(model, prompts, config.implicit_nodes)
        return steps
    if retriever == "fg":
        return {
            "entities": LLMQueryEntities,
            "questions": lambda model, prompts: LLMEntityQuestions(model, prompts, config.questions),
            "summarise": LLMEntitySummaries,
        }
    if retriever in ("qmkgf", "kg"):
        return {"entities": LLMQueryEntities}
    if retriever in ("rerank", "ensemble"):
        return {"model": lambda model, prompts: model, "prompts": lambda model, prompts: prompts}
    return {}
