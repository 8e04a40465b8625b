"""What `auto` tells of a question and of each hit."""

from dataclasses import dataclass

from qgrag.retrieval.evidence.base import Item, Part
from qgrag.retrieval.evidence.records import EnsembleEvidence


@dataclass(frozen=True, slots=True)
class AutoEvidence(EnsembleEvidence):
    """The members' records, and the pool that was chosen from.

    Args:
        pool: number of candidates.
        left_out: members that the index cannot serve.
    """

    pool: int
    left_out: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Contribution(Part):
    """One feature's part in a candidate's score.

    Args:
        feature: its name.
        value: gradient of the logit times the feature's distance from its mean over the training pools.
    """

    feature: str
    value: float


@dataclass(frozen=True, slots=True)
class ReasonItem(Item):
    """Why the evidence model ranks a hit where it does.

    Args:
        probability: that the hit is evidence, by the model.
        sentences: of the hit, the nearest to the question first.
        contributions: the features that moved its score most; empty beyond the first hits.
    """

    kind = "reason"
    probability: float
    sentences: tuple[str, ...]
    contributions: tuple[Contribution, ...]

    @property
    def line(self) -> str:
        moved = ", ".join(f"{c.feature} {c.value:+.2f}" for c in self.contributions[:4])
        told = f": {self.sentences[0]}" if self.sentences else ""
        return f"evidence with probability {self.probability:.2f}" + (f" ({moved})" if moved else "") + told
