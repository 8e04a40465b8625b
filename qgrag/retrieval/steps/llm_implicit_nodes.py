"""Nodes that a query only hints at, chosen by a language model (DualGraphRAG, section 3.3.1)."""

from collections.abc import Sequence

from pydantic import BaseModel

from qgrag.errors import ConfigError
from qgrag.extraction.records import Triple
from qgrag.llm.model import LanguageModel
from qgrag.llm.prompts import Prompts
from qgrag.llm.tokens import within_tokens
from qgrag.names.cleaning import clean_model_name
from qgrag.names.forms import without_punctuation
from qgrag.retrieval.steps.ask import ask


class GeneratedNodes(BaseModel):
    nodes: list[str]


class LLMImplicitNodes:
    """An `ImplicitNodes`. A name that is in no statement, or among the nodes already, is dropped. A query
    without statements is not asked about, and a failed request gives nothing.

    Args:
        count: nodes chosen per query, at most.
        max_triple_tokens: length of the statements in the prompt, at most, by estimate; further ones are left out, so
            they should come best first.
    """

    step = "implicit_nodes"

    def __init__(
        self,
        model: LanguageModel,
        prompts: Prompts | None = None,
        count: int = 3,
        max_triple_tokens: int = 4000,
    ) -> None:
        if count < 1 or max_triple_tokens < 1:
            raise ConfigError(f"count and max_triple_tokens must be at least 1, got {count} and {max_triple_tokens}")
        self.model = model
        self.count = count
        self.max_triple_tokens = max_triple_tokens
        self._prompt = (prompts or Prompts())["implicit_nodes"]

    def __call__(
        self,
        queries: Sequence[str],
        nodes: Sequence[Sequence[str]],
        triples: Sequence[Sequence[Triple]],
    ) -> list[list[str]]:
        rows = [
            {
                "count": self.count,
                "query": query,
                "nodes": "; ".join(known) or "none",
                "triples": within_tokens(map(triple_line, around), self.max_triple_tokens),
            }
            if around
            else None
            for query, known, around in zip(queries, nodes, triples, strict=True)
        ]
        answers = ask(self.model, self._prompt, rows, step=self.step, schema=GeneratedNodes)
        return [
            self._checked(answer.nodes, known, around) if answer else []
            for answer, known, around in zip(answers, nodes, triples, strict=True)
        ]

    def _checked(self, raw: Sequence[str], nodes: Sequence[str], triples: Sequence[Triple]) -> list[str]:
        known = {without_punctuation(name): name for triple in triples for name in (triple.head, triple.tail)}
        taken = {without_punctuation(name) for name in nodes}
        keys = dict.fromkeys(without_punctuation(clean_model_name(name)) for name in raw)
        return [known[key] for key in keys if key in known and key not in taken][: self.count]


def triple_line(triple: Triple) -> str:
    """A triple as prompts show it."""
    return f"{triple.head} | {triple.relation} | {triple.tail}"
