"""Data sets, metrics, runs over both, and their reports."""

from typing import TYPE_CHECKING

from qgrag.lazy import lazy_names

if TYPE_CHECKING:
    from qgrag.evaluation.answers.metrics import answer_metrics
    from qgrag.evaluation.bootstrap import BootstrapConfig, Difference, paired_bootstrap
    from qgrag.evaluation.datasets.loading import load_dataset
    from qgrag.evaluation.datasets.records import Dataset, Question
    from qgrag.evaluation.metrics import retrieval_metrics
    from qgrag.evaluation.runs.harness import run_evaluation
    from qgrag.evaluation.runs.summary import Summary, summarise
    from qgrag.evaluation.sweep.points import Sweep
    from qgrag.evaluation.sweep.running import run_sweep

__all__ = [
    "BootstrapConfig",
    "Dataset",
    "Difference",
    "Question",
    "Summary",
    "Sweep",
    "answer_metrics",
    "load_dataset",
    "paired_bootstrap",
    "retrieval_metrics",
    "run_evaluation",
    "run_sweep",
    "summarise",
]

__getattr__ = lazy_names(
    __name__,
    {
        "answers.metrics": ["answer_metrics"],
        "bootstrap": ["BootstrapConfig", "Difference", "paired_bootstrap"],
        "datasets.loading": ["load_dataset"],
        "datasets.records": ["Dataset", "Question"],
        "metrics": ["retrieval_metrics"],
        "runs.harness": ["run_evaluation"],
        "runs.summary": ["Summary", "summarise"],
        "sweep.points": ["Sweep"],
        "sweep.running": ["run_sweep"],
    },
)
