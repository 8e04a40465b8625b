"""A language model's question-answer pairs, with the chunk's own sentences beside them or in their place."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from qgrag.corpus.records import Chunk
from qgrag.extraction.questions.llm_questions import LLMQuestionGenerator
from qgrag.extraction.questions.local_questions import LocalQuestionConfig, LocalQuestionGenerator
from qgrag.extraction.records import Extracted, QuestionAnswer
from qgrag.llm.model import StepEstimate


class LLMQuestionsAndSentences:
    """A `QuestionGenerator`: pairs by a language model, and sentence nodes (QCG-RAG, section 3.3, step 1).

    A chunk from which the model made nothing has its sentences in either mode; its outcome still says `failed` or
    `empty`.

    Args:
        generator: makes the pairs.
        sentences: `all` adds every sentence, `fallback` only where a chunk gives no pair.
    """

    def __init__(self, generator: LLMQuestionGenerator, sentences: Literal["all", "fallback"]) -> None:
        self._generator = generator
        self._mode = sentences
        self._sentences = LocalQuestionGenerator(LocalQuestionConfig(pairs=0, sentences="all"))

    @property
    def fingerprint(self) -> str:
        return f"{self._generator.fingerprint}-{self._mode}-{self._sentences.fingerprint}"

    def __call__(self, chunks: Sequence[Chunk]) -> list[Extracted[tuple[QuestionAnswer, ...]]]:
        """Raises:
        LLMUnavailableError: the model cannot be used at all.
        """
        outcomes = self._generator(chunks)
        wanted = [i for i, outcome in enumerate(outcomes) if self._mode == "all" or not outcome.value]
        for i, sentences in zip(wanted, self._sentences([chunks[i] for i in wanted]), strict=True):
            outcomes[i] = replace(outcomes[i], value=(*outcomes[i].value, *sentences.value))
        return outcomes

    def estimate(self, chunks: Sequence[Chunk]) -> StepEstimate:
        """What the pairs of these chunks would cost; nothing is sent."""
        return self._generator.estimate(chunks)
