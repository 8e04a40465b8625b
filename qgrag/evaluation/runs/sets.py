"""The figures of one experiment over several data sets, side by side."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from qgrag.errors import ConfigError
from qgrag.evaluation.bootstrap import BootstrapConfig, resampled_means

MEAN = "mean"
SHOWN_K = 5
Records = Sequence[Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class SetsSummary:
    """The figures of all data sets.

    Args:
        questions: number of measured questions by set.
        retrievers: {RETRIEVER: {SET: {METRIC: {"mean", "low", "high"}}}}, with bootstrap intervals over questions. The
            set `mean` is the mean over all sets, each with the same weight.
        metrics: names of the metrics.
    """

    questions: Mapping[str, int]
    retrievers: Mapping[str, Mapping[str, Mapping[str, Mapping[str, float]]]]
    metrics: Sequence[str]

    def to_dict(self) -> dict[str, Any]:
        """Ready for `json.dumps`."""
        return asdict(self)


def shown_metrics(ks: Sequence[int]) -> list[str]:
    """Recall and all-evidence at the largest cut-off up to 5, or at the smallest one."""
    k = max((k for k in ks if k <= SHOWN_K), default=min(ks))
    return [f"recall@{k}", f"all_evidence@{k}"]


def summarise_sets(
    results: Mapping[str, Mapping[str, Records]], metrics: Sequence[str], bootstrap: BootstrapConfig
) -> SetsSummary:
    """Reduce the records of all runs.

    The interval of a mean over sets comes from draws of each set's questions that are independent of the other sets'.

    Args:
        results: by set and retriever, the records of `results-RETRIEVER.jsonl`; the same retrievers in each set.
        metrics: names of the metrics.
        bootstrap: how the intervals are drawn.

    Raises:
        ConfigError: a set has no question with gold.
    """
    questions: dict[str, int] = {}
    means: dict[str, dict[str, np.ndarray]] = {}
    draws: dict[str, dict[str, np.ndarray]] = {}
    for number, (name, retrievers) in enumerate(results.items()):
        for retriever, records in retrievers.items():
            values = np.array([[r["metrics"][m] for m in metrics] for r in records if r["metrics"] is not None])
            if not len(values):
                raise ConfigError(f"set {name!r}: no question has gold documents, so there is nothing to measure")
            questions[name] = len(values)
            means.setdefault(retriever, {})[name] = values.mean(axis=0)
            drawn = resampled_means(values, bootstrap.resamples, [bootstrap.seed, number])
            draws.setdefault(retriever, {})[name] = drawn
    tails = [(1 - bootstrap.confidence) / 2, (1 + bootstrap.confidence) / 2]
    figures: dict[str, dict[str, dict[str, dict[str, float]]]] = {}
    for retriever in means:
        own = means[retriever] | {MEAN: np.mean(list(means[retriever].values()), axis=0)}
        drawn_sets = draws[retriever] | {MEAN: np.mean(list(draws[retriever].values()), axis=0)}
        figures[retriever] = {}
        for name, mean in own.items():
            low, high = np.quantile(drawn_sets[name], tails, axis=0)
            columns = zip(metrics, mean.tolist(), low.tolist(), high.tolist(), strict=True)
            figures[retriever][name] = {m: {"mean": a, "low": b, "high": c} for m, a, b, c in columns}
    return SetsSummary(questions, figures, list(metrics))
