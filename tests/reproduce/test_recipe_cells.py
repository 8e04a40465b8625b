"""A table's cells: costs of building and answering, and where nothing was measured."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from torch import Tensor

from qgrag.config import from_plain
from qgrag.corpus.records import Document
from qgrag.evaluation.answers.summary import AnswerSummary
from qgrag.evaluation.runs.summary import Summary
from qgrag.index.config import IndexConfig
from qgrag.index.manifest import read_manifest, write_manifest
from qgrag.llm.usage import Usage
from qgrag.models.embedder import Embedder
from qgrag.reproduce.cells import Cell, Measured, cell_value, mean_cell
from qgrag.reproduce.costs import IndexCosts, build_timed, index_costs
from qgrag.reproduce.recipe import (
    AVERAGE,
    Column,
    DataSpec,
    Recipe,
    Row,
    load_recipe,
)


def measured(answers: AnswerSummary, timings: dict[str, dict[str, float]], indexes: dict[str, IndexCosts]) -> Measured:
    return Measured(Summary({}, {}, {}, {}, {}, {}, {}, ()), answers, timings, indexes)


def test_a_judge_s_column_takes_no_other_metric() -> None:
    recipe = load_recipe("qcg-table1")
    answers = AnswerSummary({}, {"Naive-RAG": {"multi": {"contains": {"mean": 1.0}}}}, {}, {}, {}, {})
    column = Column("lihuaworld", "judge", "multi")
    assert cell_value(column, recipe.rows[0], recipe, measured(answers, {}, {})) is None


def test_minutes_and_tokens_are_sums_over_all_questions() -> None:
    row = Row("Naive RAG", {"retriever": "naive"})
    recipe = Recipe(datasets={"nq": DataSpec()}, indexes={"base": {}}, rows=(row,))
    costs = {"Naive-RAG": {"prompt_tokens": 100.0, "completion_tokens": 20.0}}
    answers = AnswerSummary({}, {}, {}, {"overall": {"questions": 50}}, costs, {})
    timings = {"Naive-RAG": {"first": 6.0, "retrieve": 24.0, "measure": 9.0, "answer": 60.0, "judge": 99.0}}

    def cells(known: Measured) -> dict[str, float | None]:
        names = ("minutes:construction", "minutes:answers", "minutes:total", "tokens:construction", "tokens:answers")
        found = {name: cell_value(Column("nq", name), row, recipe, known) for name in names}
        return {name.replace(":", " "): cell and cell.value for name, cell in found.items()}

    assert cells(measured(answers, timings, {"base": IndexCosts(150.0, 4321.0)})) == {
        "minutes construction": 2.5,
        "minutes answers": 1.5,
        "minutes total": 4.0,
        "tokens construction": 4321.0,
        "tokens answers": 6000.0,
    }
    assert cells(measured(answers, {}, {"base": IndexCosts(None, 0.0)})) == {
        "minutes construction": None,
        "minutes answers": None,
        "minutes total": None,
        "tokens construction": 0.0,
        "tokens answers": 6000.0,
    }


class Interrupted:
    """An embedder that stops the first build that uses it."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self.stops = True

    def __getattr__(self, name: str) -> Any:
        return getattr(self._embedder, name)

    def encode(self, texts: Sequence[str], *, description: str = "") -> Tensor:
        if self.stops:
            raise KeyboardInterrupt
        return self._embedder.encode(texts)


def test_a_stopped_build_s_time_counts(embedder: Embedder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ticks = iter((0.0, 100.0, 200.0, 230.0, 300.0, 301.0))
    clock = SimpleNamespace(perf_counter=lambda: next(ticks))
    monkeypatch.setattr("qgrag.reproduce.costs.time", clock)
    config = from_plain(IndexConfig, {"query_graph": None, "knowledge_graph": None}, where="test")
    documents, folder = [Document("a", "Graz lies on the Mur.")], tmp_path / "indexes" / "base"
    stopping = Interrupted(embedder)
    with pytest.raises(KeyboardInterrupt):
        build_timed(documents, folder, config, stopping)
    stopping.stops = False
    build_timed(documents, folder, config, stopping)
    assert index_costs(folder) == IndexCosts(130.0, 0.0)
    build_timed(documents, folder, config, stopping)
    assert index_costs(folder).seconds == 130.0
    with (tmp_path / "indexes" / "base.seconds.jsonl").open("a") as file:
        file.write(json.dumps({"event": "began"}) + "\n")
    assert index_costs(folder).seconds is None
    (tmp_path / "indexes" / "base.seconds.jsonl").unlink()
    assert index_costs(folder).seconds is None


def test_tokens_of_building_are_those_of_all_its_runs(embedder: Embedder, tmp_path: Path) -> None:
    config = from_plain(IndexConfig, {"query_graph": None, "knowledge_graph": None}, where="test")
    build_timed([Document("a", "Graz lies on the Mur.")], tmp_path / "base", config, embedder)
    manifest = read_manifest(tmp_path / "base")
    usage = {"facts": Usage(prompt_tokens=40, completion_tokens=2), "gleaning": Usage(prompt_tokens=8)}
    write_manifest(tmp_path / "base", replace(manifest, usage={step: one.to_dict() for step, one in usage.items()}))
    assert index_costs(tmp_path / "base").tokens == 50


def test_averages_weigh_data_sets_alike() -> None:
    assert mean_cell([Cell(10.0, 5.0, 15.0)]) == Cell(10.0, 5.0, 15.0)
    assert mean_cell([Cell(10.0, 5.0, 15.0), Cell(20.0)]) == Cell(15.0)
    recipe = load_recipe("fg-table1")
    assert {column.dataset for column in recipe.columns} == {AVERAGE}
