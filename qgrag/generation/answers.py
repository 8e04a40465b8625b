"""Answers from retrieved evidence, with the chunks that they cite."""

import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from qgrag.errors import ConfigError
from qgrag.generation.citations import check_citations
from qgrag.generation.context import Context, build_context
from qgrag.llm.model import LanguageModel, StepEstimate
from qgrag.llm.prompts import Prompts
from qgrag.llm.records import Completion, Message
from qgrag.llm.usage import measure
from qgrag.retrieval.results import RetrievalResult

STEP = "answer"
SHORT_ANSWER_TOKENS = 32
LONG_ANSWER_TOKENS = 800
_LABEL = re.compile(r"\A\W*(?:short |final )?answer\s*[:：]\**\s*|\A\s*答案\s*[:：]\s*", re.I)


@dataclass(frozen=True)
class AnswerConfig:
    """How answers are written.

    Args:
        style: `short` for a phrase, as question answering is scored; `long` for a full text (query-focused
            summarisation).
        max_passages: K, passages shown.
        max_tokens: of all that is shown, by estimate.
        unknown: what the model is to write where the evidence holds no answer.
    """

    style: Literal["short", "long"] = "short"
    max_passages: int = 5
    max_tokens: int = 6000
    unknown: str = "Insufficient information."

    def __post_init__(self) -> None:
        if self.max_passages < 1 or self.max_tokens < 1:
            raise ConfigError(
                "answer.max_passages and answer.max_tokens must be at least 1, "
                f"got {self.max_passages} and {self.max_tokens}"
            )
        if not self.unknown.strip():
            raise ConfigError("answer.unknown must not be empty")


@dataclass(frozen=True, slots=True)
class Citation:
    """A passage that an answer cites: `document.text[start:end]`, shown as `[number]`."""

    number: int
    chunk_id: str
    document_id: str
    document_ids: tuple[str, ...]
    start: int
    end: int
    title: str = ""


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer.

    Args:
        query: the question.
        text: the answer; a long one keeps its markers `[n]`. Empty beside an error.
        citations: in order of first mention; only passages that were shown.
        invented_citations: numbers that named no passage; they were taken out.
        answered: False where the model said that the evidence does not hold the answer, or there is an error.
        truncated: it ends at the token limit.
        error: why there is no answer.
        usage: calls, tokens and seconds by step, those of retrieval included.
    """

    query: str
    text: str
    citations: tuple[Citation, ...] = ()
    invented_citations: int = 0
    answered: bool = True
    truncated: bool = False
    error: str = ""
    usage: dict[str, Any] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Plain dicts, lists, strings and numbers, ready for `json.dumps`."""
        return asdict(self)


class AnswerWriter:
    """Writes answers from retrieval results, in one batch."""

    def __init__(
        self, model: LanguageModel, config: AnswerConfig | None = None, prompts: Prompts | None = None
    ) -> None:
        self.model = model
        self.config = config or AnswerConfig()
        self.prompts = prompts or Prompts()

    def __call__(self, results: Sequence[RetrievalResult]) -> list[Answer]:
        """One answer per result, in order. A result without hits and views gets no request.

        Raises:
            LLMUnavailableError: the model cannot be used at all.
        """
        contexts = [self._context(result) for result in results]
        asked = [i for i, context in enumerate(contexts) if context.text]
        with measure() as meter:
            completions = self.model.complete(
                [self._conversation(results[i].query, contexts[i]) for i in asked],
                step=STEP,
                owners=[results[i].query for i in asked],
            )
        answers = [Answer(r.query, "", answered=False, error="nothing was retrieved", usage=r.usage) for r in results]
        for i, completion in zip(asked, completions, strict=True):
            usage = {**results[i].usage, **meter.to_dict(results[i].query)}
            answers[i] = self._answer(results[i].query, contexts[i], completion, usage)
        return answers

    def without_evidence(self, queries: Sequence[str]) -> list[Answer]:
        """Answers from what the model knows: the baseline without retrieval."""
        prompt = self.prompts[f"answer_without_evidence_{self.config.style}"]
        with measure() as meter:
            completions = self.model.complete(
                [prompt.fill(language=self.prompts.language, query=query) for query in queries],
                step=STEP,
                owners=list(queries),
            )
        nothing = Context((), "")
        return [
            self._answer(query, nothing, completion, meter.to_dict(query))
            for query, completion in zip(queries, completions, strict=True)
        ]

    def estimate(self, results: Sequence[RetrievalResult]) -> StepEstimate:
        """What answering would spend; nothing is sent."""
        contexts = [self._context(result) for result in results]
        tokens = SHORT_ANSWER_TOKENS if self.config.style == "short" else LONG_ANSWER_TOKENS
        conversations = [
            self._conversation(result.query, context) for result, context in zip(results, contexts) if context.text
        ]
        return self.model.estimate(conversations, step=STEP, answer_tokens=tokens)

    def _context(self, result: RetrievalResult) -> Context:
        return build_context(result, self.config.max_passages, self.config.max_tokens)

    def _conversation(self, query: str, context: Context) -> list[Message]:
        return self.prompts[f"answer_{self.config.style}"].fill(
            language=self.prompts.language, unknown=self.config.unknown, query=query, evidence=context.text
        )

    def _answer(self, query: str, context: Context, completion: Completion, usage: dict[str, Any]) -> Answer:
        if completion.error is not None:
            return Answer(query, "", answered=False, error=str(completion.error), usage=usage)
        cited = check_citations(_LABEL.sub("", completion.text), len(context.passages))
        citations = []
        for number in cited.numbers:
            hit = context.passages[number - 1]
            citations.append(
                Citation(number, hit.chunk_id, hit.document_id, hit.document_ids, hit.start, hit.end, hit.title)
            )
        return Answer(
            query,
            cited.bare if self.config.style == "short" else cited.text,
            tuple(citations),
            cited.invented,
            not self._says_unknown(cited.bare),
            completion.truncated,
            usage=usage,
        )

    def _says_unknown(self, text: str) -> bool:
        unknown = self.config.unknown.strip().rstrip(".。").casefold()
        return text.lstrip(" \"'*“").casefold().startswith(unknown)
