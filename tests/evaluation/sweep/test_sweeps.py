"""Sweeps: their points, that they are measured once, and their files."""

import io
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console

from qgrag.config import from_plain
from qgrag.corpus.records import Document
from qgrag.errors import ConfigError, InputError
from qgrag.evaluation.bootstrap import BootstrapConfig, paired_bootstrap
from qgrag.evaluation.datasets import Dataset, Question
from qgrag.evaluation.metrics import metric_names
from qgrag.evaluation.plots import plot_sweeps
from qgrag.evaluation.runs.run_folder import RETRIEVER_NAME
from qgrag.evaluation.runs.summary import summarise
from qgrag.evaluation.sweep import running
from qgrag.evaluation.sweep.points import Sweep, file_name
from qgrag.evaluation.sweep.report import sweep_table
from qgrag.evaluation.sweep.rows import Measured, sweep_rows, write_points
from qgrag.evaluation.sweep.running import run_sweep
from qgrag.retrieval.methods.hybrid import HybridRetriever

SMALL: dict[str, Any] = {"knowledge_graph": None, "query_graph": None}


@pytest.fixture
def towns() -> Dataset:
    texts = {"a": "Graz lies on the Mur.", "b": "Linz lies on the Danube.", "c": "Bregenz lies on a lake."}
    questions = (
        Question("1", "Which town is on the Mur?", (), ("a",), "single"),
        Question("2", "Which town is on the Danube?", (), ("b",), "single"),
    )
    return Dataset("towns", tuple(Document(id_, text) for id_, text in texts.items()), questions)


def test_points_are_every_combination_and_share_indexes() -> None:
    sweep = Sweep("s", "lexical_weight", (0.0, 1.0), "index.chunks.tokens", (64, 32), {"retriever": "hybrid"}, SMALL)
    points = list(sweep.points())
    assert [(p.value, p.series_value) for p in points] == [(0.0, 64), (1.0, 64), (0.0, 32), (1.0, 32)]
    assert points[0].index == {**SMALL, "chunks": {"tokens": 64}}
    assert points[1].retriever == {"retriever": "hybrid", "lexical_weight": 1.0}
    assert SMALL == {"knowledge_graph": None, "query_graph": None}
    assert [p.label for p in points] == ["0.0-64", "1.0-64", "0.0-32", "1.0-32"]


@pytest.fixture
def work(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is built and asked, in order."""
    done: list[str] = []
    build, retrieve = running.build_index, HybridRetriever.retrieve

    def built(*args: Any, **kwargs: Any) -> Any:
        done.append("build")
        return build(*args, **kwargs)

    def asked(self: HybridRetriever, queries: Sequence[str], top_k: int) -> Any:
        done.append(f"ask {len(queries)}")
        return retrieve(self, queries, top_k)

    monkeypatch.setattr(running, "build_index", built)
    monkeypatch.setattr(HybridRetriever, "retrieve", asked)
    return done


def test_a_sweep_is_measured_once_and_plotted(towns: Dataset, work: list[str], tmp_path: Path) -> None:
    sweep = Sweep("weight", "lexical_weight", (0.0, 2.0), retriever={"retriever": "hybrid"}, index=SMALL)
    bootstrap = BootstrapConfig(resamples=50)
    rows = run_sweep(sweep, towns, tmp_path, ks=(1, 2), bootstrap=bootstrap)
    assert [row["value"] for row in rows if row["group"] == "overall"] == [0.0, 2.0]
    assert all(row["recall@2_low"] <= row["recall@2"] <= row["recall@2_high"] for row in rows)
    assert work == ["build", "ask 1", "ask 1", "ask 1", "ask 1"]
    assert run_sweep(sweep, towns, tmp_path, ks=(1, 2), bootstrap=bootstrap) == rows
    assert work == ["build", "ask 1", "ask 1", "ask 1", "ask 1"]
    more = replace(sweep, values=(0.0, 1.0, 2.0))
    assert len(run_sweep(more, towns, tmp_path, ks=(1, 2), bootstrap=bootstrap)) == len(rows) * 3 // 2
    assert work[5:] == ["build", "ask 1", "ask 1"]
    named = [{**row, "value": f"mode {row['value']}"} for row in rows]
    plot_sweeps([(rows, "overall", "recall@1"), (named, "overall", "recall@1")], tmp_path / "sweep.png", "towns")
    assert (tmp_path / "sweep.png").read_bytes().startswith(b"\x89PNG")
    with pytest.raises(InputError, match="other settings"):
        run_sweep(replace(sweep, index={**SMALL, "chunks": {"tokens": 300}}), towns, tmp_path, ks=(1, 2))


def test_points_are_compared_with_their_line_s_base_by_question() -> None:
    sweep = Sweep("s", "hops", (0, 1, 2), "neighbours", (2, 3), {"retriever": "qcg"}, SMALL, base=1)
    points = list(sweep.points())
    kinds = ["single", "multi", "null"] * 12
    questions = [Question(str(i), "?", (), () if kind == "null" else ("a",), kind) for i, kind in enumerate(kinds)]
    generator = np.random.default_rng(0)
    drawn = {point.label: generator.integers(0, 2, (36, 7)).astype(float) for point in points}
    names = metric_names((1,))
    records = {
        label: [
            {"metrics": dict(zip(names, row)) if question.gold else None, "usage": {}}
            for question, row in zip(questions, values.tolist(), strict=True)
        ]
        for label, values in drawn.items()
    }
    bootstrap = BootstrapConfig(resamples=200)
    measured = {
        label: Measured(summarise(questions, {label: own}, [], {"ks": (1,)}, (), bootstrap), own)
        for label, own in records.items()
    }
    rows = sweep_rows(sweep, points, measured, questions, bootstrap)
    assert [(row["series_value"], row["value"]) for row in rows[::3]] == [(n, h) for n in (2, 3) for h in (0, 1, 2)]
    for row in rows:
        assert row["base"] == (row["value"] == 1)
        if row["base"]:
            assert "mrr@1_difference" not in row
            continue
        rated = [i for i, q in enumerate(questions) if q.gold and row["group"] in ("overall", q.type)]
        column = names.index("mrr@1")
        a, b = (drawn[f"{value}-{row['series_value']}"][rated, column] for value in (row["value"], 1))
        expected = paired_bootstrap(a, b, bootstrap)
        assert row["mrr@1_difference"] == pytest.approx(a.mean() - b.mean())
        assert row["mrr@1_difference_low"] <= row["mrr@1_difference"] <= row["mrr@1_difference_high"]
        assert [row["mrr@1_difference_low"], row["mrr@1_difference_high"]] == pytest.approx(
            [float(expected.low), float(expected.high)]
        )
    printed = io.StringIO()
    Console(file=printed, width=100).print(sweep_table(rows, "mrr@1"))
    assert len(re.findall(r"base\s", printed.getvalue().partition("below:")[0])) == 6
    assert len(re.findall(r"[+-]\d\.\d{3} \([+-]\d\.\d\d,[+-]\d\.\d\d\)", printed.getvalue())) == 12


@pytest.mark.parametrize(
    ("values", "stored"),
    [((1, 2), [1, 2]), ((1, 0.5), [1.0, 0.5]), ((1, "all"), ["1", "all"]), ((True, None), [True, None])],
)
def test_numbers_are_stored_as_numbers(values: tuple[Any, ...], stored: list[Any], tmp_path: Path) -> None:
    write_points([{"value": value, "series_value": None, "f1@1": 0.5} for value in values], tmp_path / "points.parquet")
    table = pq.read_table(tmp_path / "points.parquet").to_pylist()
    assert [row["value"] for row in table] == stored
    assert [type(row["value"]) for row in table] == [type(value) for value in stored]


@given(st.one_of(st.floats(allow_nan=False), st.text(max_size=20), st.none(), st.lists(st.integers(), max_size=3)))
@settings(max_examples=100, deadline=None)
def test_every_value_makes_a_file_name(value: Any) -> None:
    assert RETRIEVER_NAME.fullmatch(file_name(value))


def test_signs_and_nothing_make_names_of_their_own(towns: Dataset) -> None:
    sweep = Sweep("s", "weight", (-0.5, 0.5, None), "mode", ("", "all"), {"retriever": "hybrid"}, SMALL)
    labels = [point.label for point in sweep.points()]
    assert labels == ["minus0.5-empty", "minus0.5-all", "0.5-empty", "0.5-all", "None-empty", "None-all"]


def test_mistakes_are_named(towns: Dataset, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="series and series_values"):
        Sweep("s", "x", (1,), series="y")
    with pytest.raises(ConfigError, match="base 3 is none of the values of x"):
        Sweep("s", "x", (1, 2), base=3)
    with pytest.raises(ConfigError, match="needs a name"):
        list(Sweep("s", "x").points())
    assert from_plain(Sweep, {"name": "s", "x": "hops", "values": [1]}, where="file").values == (1,)
    with pytest.raises(ConfigError, match="lexical_wait"):
        run_sweep(
            Sweep("s", "lexical_wait", (1,), retriever={"retriever": "hybrid"}, index=SMALL), towns, tmp_path, ks=(1,)
        )
    with pytest.raises(ConfigError, match=r"chunks\.tokenz"):
        run_sweep(Sweep("s", "index.chunks.tokenz", (1,), index=SMALL), towns, tmp_path, ks=(1,))
    same = Sweep("s", "index.embedder.model", ("x/model", "y/model"), retriever={"retriever": "naive"}, index=SMALL)
    with pytest.raises(InputError, match="two points are called 'model'"):
        run_sweep(same, towns, tmp_path, ks=(1,))


def test_values_that_are_lists_are_drawn(tmp_path: Path) -> None:
    common = {"sweep": "s", "x": "members", "series": "", "series_value": None, "group": "overall"}
    rows = [
        {**common, "value": value, "hit@1": mean, "hit@1_low": mean - 0.1, "hit@1_high": mean + 0.1}
        for value, mean in ((["bm25"], 0.5), (["bm25", "qcg"], 0.6))
    ]
    plot_sweeps([(rows, "overall", "hit@1")], tmp_path / "sweep.png", "members")
    assert (tmp_path / "sweep.png").read_bytes().startswith(b"\x89PNG")
