"""Question-answer pairs by a language model: Doc2Query, extended (QCG-RAG, section 3.3, step 1)."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from pydantic import BaseModel, ConfigDict

from qgrag.corpus.records import Chunk
from qgrag.errors import ConfigError
from qgrag.extraction.grounding import one_line, share_found, supporting_sentence
from qgrag.extraction.llm_step import ExtractionStep
from qgrag.extraction.name_gate import NameGate
from qgrag.extraction.outcome import count_repairs, outcome
from qgrag.extraction.records import Extracted, QuestionAnswer
from qgrag.llm.model import LanguageModel, StepEstimate
from qgrag.llm.prompts import Prompts
from qgrag.llm.records import Completion, CompletionError, Message
from qgrag.names.forms import without_punctuation

TOKENS_PER_PAIR = 60
MAX_QUESTION_CHARS = 500
MAX_ANSWER_CHARS = 1000
MIN_SHARE_FOUND = 0.5
VERDICTS = frozenset(
    without_punctuation(word) for word in ("yes", "no", "true", "false", "是", "否", "不是", "有", "没有", "不")
)
_NUMBER = re.compile(r"^\s*(?:Q?\d{1,3}\s*[.):、]|[-*•])\s+")


class GeneratedPair(BaseModel):
    model_config = ConfigDict(coerce_numbers_to_str=True)

    question: str
    answer: str


class GeneratedPairs(BaseModel):
    pairs: list[GeneratedPair]


@dataclass
class _Interview:
    """What the requests about one chunk have found so far."""

    gate: NameGate
    messages: list[Message]
    pairs: dict[str, QuestionAnswer] = field(default_factory=dict)
    errors: list[CompletionError] = field(default_factory=list)
    finished: bool = False

    @property
    def counts(self) -> Counter[str]:
        return self.gate.counts


class LLMQuestionGenerator(ExtractionStep):
    """A `QuestionGenerator`: M pairs per chunk in one request, or in several where the token limit is too low for that.

    Each further request continues the conversation, so that the model sees what it has asked already. The sentence of
    a pair is the chunk's sentence that holds its answer. Five kinds of pairs are dropped and counted:

    - `repeats`: the question was asked already.
    - `unusable_pairs`: the question or the answer is empty, or too long.
    - `example_texts`: the question was copied from the prompt.
    - `ungrounded_answers`: the chunk does not have most of the answer's words. A plain yes or no is kept, and so is
      every answer in a language that the prompts set.
    - `surplus`: the model gave more than M pairs.

    Args:
        count: M, pairs asked for.
    """

    step = "pairs"
    prompt_names = ("pairs", "pairs_more")

    def __init__(self, model: LanguageModel, prompts: Prompts | None = None, count: int = 20) -> None:
        super().__init__(model, prompts)
        if count < 1:
            raise ConfigError(f"count must be at least 1, got {count}")
        self.count = count

    @property
    def settings(self) -> str:
        return f"count={self.count}, grounded"

    @property
    def portions(self) -> list[int]:
        """How many pairs each request of a chunk asks for."""
        most = max(1, self.model.max_tokens // TOKENS_PER_PAIR)
        whole, rest = divmod(self.count, most)
        return [most] * whole + ([rest] if rest else [])

    def __call__(self, chunks: Sequence[Chunk]) -> list[Extracted[tuple[QuestionAnswer, ...]]]:
        """Raises:
        LLMUnavailableError: the model cannot be used at all.
        """
        first, *more = self.portions
        interviews = [
            _Interview(NameGate(chunk, self.prompts["pairs"].text), self._conversation(chunk, first))
            for chunk in chunks
        ]
        for portion in (first, *more):
            under_way = [i for i, interview in enumerate(interviews) if not interview.finished]
            if not under_way:
                break
            for i in under_way:
                if interviews[i].pairs:
                    interviews[i].messages += self.prompts["pairs_more"].fill(count=portion)
            completions = self.model.complete(
                [interviews[i].messages for i in under_way],
                GeneratedPairs,
                step=self.step,
                owners=[chunks[i].id for i in under_way],
            )
            for i, completion in zip(under_way, completions, strict=True):
                self._take(interviews[i], chunks[i], completion)
        return [
            outcome(
                tuple(interview.pairs.values()),
                bool(interview.pairs),
                interview.errors,
                interview.counts,
                "the model found nothing to ask",
            )
            for interview in interviews
        ]

    def estimate(self, chunks: Sequence[Chunk]) -> StepEstimate:
        """What the pairs of these chunks would cost; nothing is sent. Later requests carry the earlier
        answers."""
        first, *more = self.portions
        total = last = self.model.estimate(
            [self._conversation(chunk, first) for chunk in chunks],
            GeneratedPairs,
            step=self.step,
            answer_tokens=first * TOKENS_PER_PAIR,
        )
        for portion in more:
            last = StepEstimate(
                self.step,
                last.calls,
                last.cache_hits,
                last.prompt_tokens + last.completion_tokens,
                last.calls * portion * TOKENS_PER_PAIR,
            )
            total += last
        return total

    def _conversation(self, chunk: Chunk, count: int) -> list[Message]:
        return self.prompts["pairs"].fill(
            language=self.prompts.language, count=count, title=chunk.title, text=chunk.readable
        )

    def _take(self, interview: _Interview, chunk: Chunk, completion: Completion) -> None:
        count_repairs(completion, interview.counts)
        generated = completion.parsed(GeneratedPairs)
        if generated is None:
            if completion.error is not None:
                interview.errors.append(completion.error)
            interview.finished = True
            return
        before = len(interview.pairs)
        for item in generated.pairs:
            question, answer = one_line(_NUMBER.sub("", item.question)), one_line(item.answer)
            key = without_punctuation(question[:200])
            if reason := self._reason(interview, chunk, question, answer):
                interview.counts[reason] += 1
            elif not interview.gate.is_example(question):
                sentence = supporting_sentence(chunk.text, (answer,), f"{question} {answer}")
                interview.pairs[key] = QuestionAnswer(question, answer, sentence)
        interview.finished = len(interview.pairs) in (before, self.count)
        interview.messages = [
            *interview.messages,
            {"role": "assistant", "content": generated.model_dump_json()},
        ]

    def _reason(self, interview: _Interview, chunk: Chunk, question: str, answer: str) -> str:
        """Why a pair is dropped, empty if it is not."""
        key = without_punctuation(question[:200])
        if not key or not answer or len(question) > MAX_QUESTION_CHARS or len(answer) > MAX_ANSWER_CHARS:
            return "unusable_pairs"
        if key in interview.pairs:
            return "repeats"
        if not (self.prompts.config.language or _is_grounded(answer, chunk)):
            return "ungrounded_answers"
        return "surplus" if len(interview.pairs) >= self.count else ""


def _is_grounded(answer: str, chunk: Chunk) -> bool:
    """Whether an answer can come from the chunk: most of its words stand there, or it is a plain yes or no."""
    return (
        without_punctuation(answer) in VERDICTS
        or share_found(answer, f"{chunk.title}\n{chunk.readable}") >= MIN_SHARE_FOUND
    )
