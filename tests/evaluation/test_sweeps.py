"""Sweeps: their points, that they are measured once, and their files."""

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from qgrag.config import from_plain
from qgrag.corpus.records import Document
from qgrag.errors import ConfigError, InputError
from qgrag.evaluation.bootstrap import BootstrapConfig
from qgrag.evaluation.datasets import Dataset, Question
from qgrag.evaluation.sweep_plots import plot_sweeps
from qgrag.evaluation.sweeps import Sweep, load_point, run_sweep

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
    assert [(p.value, p.serie) for p in points] == [(0.0, 64), (1.0, 64), (0.0, 32), (1.0, 32)]
    assert points[0].index == {**SMALL, "chunks": {"tokens": 64}}
    assert points[1].retriever == {"retriever": "hybrid", "lexical_weight": 1.0}
    assert SMALL == {"knowledge_graph": None, "query_graph": None}
    assert [p.label for p in points] == ["0.0-64", "1.0-64", "0.0-32", "1.0-32"]


def test_a_sweep_is_measured_once_and_plotted(towns: Dataset, tmp_path: Path) -> None:
    sweep = Sweep("weight", "lexical_weight", (0.0, 2.0), retriever={"retriever": "hybrid"}, index=SMALL)
    loaded = []

    def load(index: Any, point: Any) -> Any:
        retriever = load_point(index, point)
        retrieve = retriever.retrieve
        loaded.append(point.label)

        def counted(queries: Any, top_k: int) -> Any:
            loaded.append("asked")
            return retrieve(queries, top_k)

        retriever.retrieve = counted  # type: ignore[method-assign]
        return retriever

    bootstrap = BootstrapConfig(resamples=50)
    rows = run_sweep(sweep, towns, tmp_path, ks=(1, 2), bootstrap=bootstrap, load=load)
    assert [row["value"] for row in rows if row["group"] == "overall"] == [0.0, 2.0]
    assert all(row["recall@2_low"] <= row["recall@2"] <= row["recall@2_high"] for row in rows)
    assert loaded.count("asked") == 2
    assert run_sweep(sweep, towns, tmp_path, ks=(1, 2), bootstrap=bootstrap, load=load) == rows
    assert loaded.count("asked") == 2
    table = pq.read_table(tmp_path / "points.parquet").to_pylist()
    assert [row["value"] for row in table] == [str(row["value"]) for row in rows]
    named = [{**row, "value": f"mode {row['value']}"} for row in rows]
    plot_sweeps([(rows, "overall", "recall@1"), (named, "overall", "recall@1")], tmp_path / "sweep.png", "towns")
    assert (tmp_path / "sweep.png").read_bytes().startswith(b"\x89PNG")


def test_mistakes_are_named(towns: Dataset, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="series and series_values"):
        Sweep("s", "x", (1,), series="y")
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
