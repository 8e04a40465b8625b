"""Columns of a table, and the metrics that they may name."""

from dataclasses import dataclass

from qgrag.config import unknown_name
from qgrag.errors import ConfigError
from qgrag.evaluation.answers.judging_table import ANSWER_METRICS
from qgrag.evaluation.metrics import metric_names
from qgrag.evaluation.runs.summary import OVERALL
from qgrag.generation.pairwise import CRITERIA

KS = (1, 2, 5, 8, 10)
RETRIEVAL = tuple(metric_names(KS))
JUDGE, METEOR = "judge", "meteor"
WINS = tuple(f"wins:{criterion}" for criterion in CRITERIA)
MINUTES = ("minutes:construction", "minutes:answers", "minutes:total")
TOKENS = ("tokens:construction", "tokens:answers")
KNOWN = (*ANSWER_METRICS, JUDGE, METEOR, *WINS, *MINUTES, *TOKENS, *RETRIEVAL)


@dataclass(frozen=True)
class Column:
    """One column: what is measured on which questions.

    Args:
        dataset: key of `Recipe.datasets`; `average` for the unweighted mean over all of them.
        metric: one of `KNOWN`: an answer or retrieval metric; `wins:CRITERION`, the share that `Recipe.compare_with`
            wins over the row; `minutes:` of building the index, of retrieval and answers, or of both; `tokens:` of
            building, or of retrieval and answers, for all questions. Answers that the model's cache gave cost nothing:
            of rows that ask the same, the first one pays, and what a stopped batch had asked is in no count.
        group: type of question, or `overall`.

    Raises:
        ConfigError: the metric is unknown.
    """

    dataset: str = ""
    metric: str = ""
    group: str = OVERALL

    def __post_init__(self) -> None:
        if self.metric not in KNOWN:
            raise ConfigError(unknown_name("a column's metric", self.metric, KNOWN))

    @property
    def heading(self) -> str:
        """For tables."""
        parts = (self.dataset, self.group if self.group != OVERALL else "", self.metric)
        return " ".join(part for part in parts if part)
