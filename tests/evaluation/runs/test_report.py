"""What a person sees of a run: the table, and labels that do not overlap."""

from io import StringIO
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console

from qgrag.evaluation.bootstrap import BootstrapConfig
from qgrag.evaluation.datasets import Dataset
from qgrag.evaluation.plots import spread
from qgrag.evaluation.runs.harness import run_evaluation
from qgrag.evaluation.runs.report import default_columns, summary_table


def rendered(summary: Any, **arguments: Any) -> str:
    console = Console(file=StringIO(), width=80)
    console.print(summary_table(summary, **arguments))
    output: str = console.file.getvalue()  # type: ignore[attr-defined]
    return output


def test_table_fits_a_terminal(dataset: Dataset, good: Any, bad: Any, tmp_path: Path) -> None:
    retrievers = {"good": good, "a-rather-long-name": bad}
    summary = run_evaluation(dataset, retrievers, tmp_path, bootstrap=BootstrapConfig(resamples=50))
    output = rendered(summary)
    assert "…" not in output
    assert "tiny, overall: 3 questions" in output
    row = next(line for line in output.splitlines() if line.startswith("good"))
    assert row.split()[1:] == [
        f"{summary.retrievers['good']['overall'][c]:.3f}" for c in default_columns((1, 2, 5, 8, 10))
    ]
    assert "1 questions without gold documents are in no figure" in output
    assert "good: " in output
    assert "null:" not in output  # fmt: skip


def test_chosen_columns(dataset: Dataset, good: Any, tmp_path: Path) -> None:
    summary = run_evaluation(dataset, {"good": good}, tmp_path, ks=(1, 2))
    output = rendered(summary, columns=["hit@1", "f1@2"])
    assert "Hit" in output
    assert "MRR" not in output


@settings(max_examples=100, deadline=None)
@given(st.lists(st.floats(0, 1), max_size=14).map(sorted))
def test_labels_keep_their_distance(heights: list[float]) -> None:
    spaced = spread(heights, 0.05)
    assert all(above - below >= 0.05 - 1e-9 for below, above in pairwise(spaced))
    assert all(height <= 1 for height in spaced)


def test_labels_that_are_apart_stay() -> None:
    assert spread([0.1, 0.5, 0.9], 0.05) == pytest.approx([0.1, 0.5, 0.9])


def test_markdown_has_every_retriever_with_its_intervals(dataset: Dataset, good: Any, bad: Any, tmp_path: Path) -> None:
    run_evaluation(dataset, {"good": good, "bad": bad}, tmp_path, ks=(1, 2), bootstrap=BootstrapConfig(resamples=50))
    text = (tmp_path / "table.md").read_text()
    assert "## overall: 3 questions" in text
    assert text.count("| `good` |") == text.count("| `bad` |") == 3
    row = next(line for line in text.splitlines() if line.startswith("| `good` |"))
    assert row.split(" | ")[2].startswith("1.000 (1.00-1.00)")
