"""Which of two answers is better, as a language model judges, each pair in both orders (FG-RAG, section
6.1)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import BaseModel, field_validator

from qgrag.llm.model import LanguageModel
from qgrag.llm.prompts import Prompts

CRITERIA = ("comprehensiveness", "diversity", "empowerment", "overall")
Winner = Literal["1", "2", "tie"]
SWAPPED = {"1": "2", "2": "1", "tie": "tie"}
"""The place that an answer has in the other order."""
_SHARE_OF_FIRST = {"1": 1.0, "2": 0.0, "tie": 0.5}


class GeneratedComparison(BaseModel):
    """A judge's answer; `1`, `Answer 1` and `answer1` mean the same."""

    reason: str = ""
    comprehensiveness: Winner
    diversity: Winner
    empowerment: Winner
    overall: Winner

    @field_validator(*CRITERIA, mode="before")
    @classmethod
    def _short(cls, value: Any) -> Any:
        text = str(value).strip().lower().removeprefix("answer").strip(" .'\"")
        return "tie" if text in ("tie", "both", "equal", "neither", "draw") else text


@dataclass(frozen=True, slots=True)
class Comparison:
    """The outcome for one pair.

    Args:
        scores: criterion to the share of the two orders that the first answer won, a tie counting half:
            1.0 won both, 0.5 each order's first or second place won, or ties; empty if neither order was
            judged.
        reasons: the judge's, in the given and in the swapped order; or why there is no judgement.
        judged: orders with a usable judgement, 0 to 2.
        places: for the given and for the swapped order, criterion to the place that won: `1` for the answer
            shown first, `2` for the one shown second, or `tie`; empty where that order was not judged.
    """

    scores: dict[str, float]
    reasons: tuple[str, str]
    judged: int
    places: tuple[dict[str, str], dict[str, str]] = ({}, {})


class PairwiseJudge:
    """Compares two answers to the same question by comprehensiveness, diversity, empowerment, and overall."""

    step = "judge_pair"

    def __init__(self, model: LanguageModel, prompts: Prompts | None = None) -> None:
        self.model = model
        self._prompt = (prompts or Prompts())["judge_pair"]

    def __call__(self, queries: Sequence[str], first: Sequence[str], second: Sequence[str]) -> list[Comparison]:
        """Judge B pairs, two requests each."""
        rows = list(zip(queries, first, second, strict=True))
        orders = [(q, a, b) for q, a, b in rows] + [(q, b, a) for q, a, b in rows]
        completions = self.model.complete(
            [self._prompt.fill(query=q, first=a, second=b) for q, a, b in orders],
            GeneratedComparison,
            step=self.step,
            owners=[q for q, _, _ in orders],
        )
        comparisons = []
        for given, swapped in zip(completions[: len(rows)], completions[len(rows) :], strict=True):
            one, two = given.parsed(GeneratedComparison), swapped.parsed(GeneratedComparison)
            reasons = (
                one.reason if one else str(given.error),
                two.reason if two else str(swapped.error),
            )
            comparisons.append(compared(_places(one), _places(two), reasons))
        return comparisons


def compared(given: dict[str, str], swapped: dict[str, str], reasons: tuple[str, str]) -> Comparison:
    """The outcome of two orders.

    Args:
        given: criterion to the place that won, with the answers as they are; empty where that was not judged.
        swapped: the same with the answers in the other order.
        reasons: for each order.
    """
    own = [places for places in (given, {c: SWAPPED[place] for c, place in swapped.items()}) if places]
    scores = {c: sum(_SHARE_OF_FIRST[places[c]] for places in own) / len(own) for c in CRITERIA} if own else {}
    return Comparison(scores, reasons, len(own), (given, swapped))


def _places(judgement: GeneratedComparison | None) -> dict[str, str]:
    return {c: str(getattr(judgement, c)) for c in CRITERIA} if judgement is not None else {}
