"""Data sets in their publishers' formats."""

from qgrag.evaluation.datasets.loading import DATASETS, load_dataset, load_documents
from qgrag.evaluation.datasets.records import Dataset, Question

__all__ = ["DATASETS", "Dataset", "Question", "load_dataset", "load_documents"]
