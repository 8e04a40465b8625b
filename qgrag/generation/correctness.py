"""Whether answers are correct, as a language model judges (QCG-RAG, section 4.1)."""

from collections.abc import Sequence
from dataclasses import dataclass

from pydantic import BaseModel

from qgrag.llm.model import LanguageModel
from qgrag.llm.prompts import Prompts


class GeneratedVerdict(BaseModel):
    reason: str = ""
    correct: bool


@dataclass(frozen=True, slots=True)
class Verdict:
    """The judgement on one answer.

    Args:
        correct: None where the judge gave no usable judgement.
        reason: the judge's, or why there is no judgement.
    """

    correct: bool | None
    reason: str


class CorrectnessJudge:
    """Compares answers with reference answers. An empty answer is incorrect without being judged."""

    step = "judge_correct"

    def __init__(self, model: LanguageModel, prompts: Prompts | None = None) -> None:
        self.model = model
        self._prompt = (prompts or Prompts())["judge_correct"]

    def __call__(
        self, queries: Sequence[str], references: Sequence[Sequence[str]], answers: Sequence[str]
    ) -> list[Verdict]:
        """Judge B answers.

        Args:
            queries: B questions.
            references: for each, the answers that are accepted.
            answers: B answers.
        """
        verdicts = [Verdict(False, "no answer")] * len(queries)
        asked = [i for i in range(len(queries)) if answers[i].strip()]
        completions = self.model.complete(
            [
                self._prompt.fill(query=queries[i], reference=" / ".join(references[i]), answer=answers[i])
                for i in asked
            ],
            GeneratedVerdict,
            step=self.step,
            owners=[queries[i] for i in asked],
        )
        for i, completion in zip(asked, completions, strict=True):
            generated = completion.parsed(GeneratedVerdict)
            if generated is None:
                verdicts[i] = Verdict(None, str(completion.error))
            else:
                verdicts[i] = Verdict(generated.correct, generated.reason)
        return verdicts
