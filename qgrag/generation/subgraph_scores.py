"""Marks for subgraphs by a language model: labels for the reward model (QMKGF, section 3.3)."""

from collections.abc import Sequence
from dataclasses import dataclass

from pydantic import BaseModel, Field

from qgrag.errors import ConfigError
from qgrag.extraction.records import Triple
from qgrag.llm.model import LanguageModel
from qgrag.llm.prompts import Prompts
from qgrag.llm.tokens import within_tokens
from qgrag.retrieval.steps.llm_implicit_nodes import triple_line

HIGHEST_MARK = 10


class GeneratedMarks(BaseModel):
    richness: float = Field(ge=0, le=HIGHEST_MARK)
    relevance: float = Field(ge=0, le=HIGHEST_MARK)
    connectivity: float = Field(ge=0, le=HIGHEST_MARK)


@dataclass(frozen=True, slots=True)
class SubgraphScore:
    """Three marks, each from 0 to 1."""

    richness: float
    relevance: float
    connectivity: float

    @property
    def total(self) -> float:
        """Their mean: the label to train on."""
        return (self.richness + self.relevance + self.connectivity) / 3


class SubgraphJudge:
    """Marks how useful subgraphs are for a query. An empty subgraph gets zeros without being judged.

    Args:
        max_triple_tokens: limit on the estimated tokens of the triples; the last ones beyond it are left out.
    """

    step = "judge_subgraph"

    def __init__(self, model: LanguageModel, prompts: Prompts | None = None, max_triple_tokens: int = 4000) -> None:
        if max_triple_tokens < 1:
            raise ConfigError(f"max_triple_tokens must be at least 1, got {max_triple_tokens}")
        self.model = model
        self.max_triple_tokens = max_triple_tokens
        self._prompt = (prompts or Prompts())["judge_subgraph"]

    def __call__(self, queries: Sequence[str], subgraphs: Sequence[Sequence[Triple]]) -> list[SubgraphScore | None]:
        """Marks for B query-subgraph pairs; None where the judge gave no usable marks."""
        scores: list[SubgraphScore | None] = [SubgraphScore(0.0, 0.0, 0.0)] * len(queries)
        asked = [i for i, triples in enumerate(subgraphs) if triples]
        completions = self.model.complete(
            [
                self._prompt.fill(
                    query=queries[i],
                    triples=within_tokens(map(triple_line, subgraphs[i]), self.max_triple_tokens),
                )
                for i in asked
            ],
            GeneratedMarks,
            step=self.step,
            owners=[queries[i] for i in asked],
        )
        for i, completion in zip(asked, completions, strict=True):
            marks = completion.parsed(GeneratedMarks)
            if marks is None:
                scores[i] = None
                continue
            scores[i] = SubgraphScore(
                marks.richness / HIGHEST_MARK, marks.relevance / HIGHEST_MARK, marks.connectivity / HIGHEST_MARK
            )
        return scores
