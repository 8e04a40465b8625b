"""Recipes: what they hold, what they need, and that each runs end to end with embedded models."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from rich.console import Console

from qgrag.cli.main import main
from qgrag.cli.reproduce import make_parser, with_endpoint
from qgrag.config import load_yaml
from qgrag.errors import ConfigError, InputError
from qgrag.evaluation.datasets import DATASETS, Dataset
from qgrag.models.embedder import Embedder
from qgrag.reproduce import requirements
from qgrag.reproduce.cells import Cell
from qgrag.reproduce.datasets import as_one_text
from qgrag.reproduce.materials import SmokeMaterials
from qgrag.reproduce.recipe import (
    Column,
    DataSpec,
    Recipe,
    Row,
    filled,
    load_recipe,
    recipe_folder,
    recipe_names,
    slug,
)
from qgrag.reproduce.report import as_markdown, side_by_side
from qgrag.reproduce.requirements import needs_of
from qgrag.reproduce.running import RunPlaces, run_recipe
from qgrag.reproduce.stand_ins import ContainsJudge, CountingJudge, EmbeddingScorer, RememberingEmbedder

ROOT = Path(__file__).resolve().parents[2]
TABLES = {
    "QCG-RAG": {"Table 1"},
    "DualGraphRAG": {"Table 1", "Table 2", "Table 3"},
    "FG-RAG": {"Table 1", "Table 2", "Table 3", "Table 5", "Table 7"},
    "QMKGF": {"Table 2", "Table 3", "Table 4", "Table 5", "Table 6", "Table 7"},
}


@pytest.fixture(autouse=True)
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requirements, "endpoint_problem", lambda config: "nothing answers")


def test_there_is_a_recipe_for_each_results_table() -> None:
    found: dict[str, set[str]] = {}
    for name in recipe_names():
        recipe = load_recipe(name)
        found.setdefault(recipe.paper, set()).add(recipe.table)
        assert name.rpartition("-")[2] == recipe.table.lower().replace(" ", "")
    assert found == TABLES


def test_the_recipes_stand_among_the_configurations_too() -> None:
    assert (ROOT / "configs" / "reproduce").resolve() == recipe_folder().resolve()


@pytest.mark.parametrize("name", recipe_names())
def test_recipes_are_complete(name: str) -> None:
    recipe = load_recipe(name)
    assert recipe.about
    assert recipe.source
    assert recipe.runnable
    assert recipe.llm.model
    assert len({slug(row.method) for row in recipe.rows}) == len(recipe.rows)
    for spec in recipe.datasets.values():
        assert spec.format in DATASETS
        assert spec.get
    measured = any(row.published for row in recipe.rows)
    assert measured or any("not at hand" in note for note in recipe.notes)
    for need in needs_of(recipe, None):
        assert need.here or need.how


def test_numbers_of_a_table_are_the_paper_s() -> None:
    recipe = load_recipe("qcg-table1")
    published = {row.method: row.published for row in recipe.rows}
    assert published["QCG-RAG"][:4] == (73.16, 62.12, 74.51, 73.85)
    assert recipe.rows[-1].parameters("lihuaworld")["nodes"] == 10
    assert recipe.rows[-1].parameters("multihop-rag")["nodes"] == 15


def by_method(name: str) -> dict[str, dict[str, float]]:
    """Published numbers by method and heading."""
    recipe = load_recipe(name)
    headings = [column.heading for column in recipe.columns]
    return {
        row.method: {heading: number for heading, number in zip(headings, row.published) if number is not None}
        for row in recipe.rows
    }


def test_numbers_that_the_papers_print_twice_are_the_same() -> None:
    squad, hotpotqa = by_method("qmkgf-table2")["QMKGF"], by_method("qmkgf-table3")["QMKGF"]
    assert by_method("qmkgf-table4")["QMKGF"].items() <= (squad | hotpotqa).items()
    assert by_method("qmkgf-table6")["ERNIE"].items() <= squad.items()
    assert by_method("qmkgf-table7")["RM fusion"] == hotpotqa
    assert by_method("dual-table3")["DualGraphRAG"].items() <= by_method("dual-table1")["DualGraphRAG"].items()


def test_sums_and_means_that_the_papers_print_are_theirs() -> None:
    datasets = ("nq", "hotpotqa", "2wikimultihopqa")
    for row in by_method("dual-table2").values():
        for name in datasets:
            parts = row[f"{name} minutes:construction"] + row[f"{name} minutes:answers"]
            assert parts == row[f"{name} minutes:total"]
    for row in by_method("dual-table1").values():
        for metric in ("exact_match", "f1"):
            mean = sum(row[f"{name} {metric}"] for name in datasets) / 3
            assert row[f"average {metric}"] == pytest.approx(mean, abs=0.05)


def test_flags_name_the_reader_and_its_own_judge_alone() -> None:
    flags = ["--llm-model", "mine", "--llm-base-url", "http://127.0.0.1:9/v1", "--max-calls", "7"]
    args = make_parser().parse_args(flags)
    own, other = (with_endpoint(load_recipe(name), args) for name in ("qcg-table1", "fg-table1"))
    assert own.judge is not None
    assert other.judge is not None
    assert own.llm.model == own.judge.model == other.llm.model == "mine"
    assert (other.judge.model, other.judge.base_url) == ("gpt-4o-mini", "")
    assert own.judge.max_calls == other.judge.max_calls == 7
    endpoints = [need.what for need in needs_of(other, None) if need.what.startswith("endpoint")]
    assert endpoints == [
        "endpoint http://127.0.0.1:9/v1 with mine",
        "endpoint https://api.openai.com/v1 with gpt-4o-mini",
    ]
    assert sum(need.what.startswith("endpoint") for need in needs_of(own, None)) == 1
    assert any("nothing answers; it judges" in need.how for need in needs_of(other, None))


def test_needs_tell_what_is_here(tmp_path: Path) -> None:
    recipe = load_recipe("qmkgf-table3")
    (tmp_path / "musique").mkdir()
    (tmp_path / "musique" / "musique_ans_v1.0_dev.jsonl").write_text("{}\n")
    needs = {need.what: need for need in needs_of(recipe, tmp_path)}
    assert needs["data set musique (musique format)"].here
    assert not needs["data set hotpotqa (hotpotqa format)"].here
    assert "hotpot_dev_distractor" in needs["data set hotpotqa (hotpotqa format)"].how
    assert not needs["cross-encoder BAAI/bge-reranker-large"].here
    assert "runs/qmkgf-musique/embedder" in needs
    assert "embedding model BAAI/bge-large-en-v1.5" in needs
    assert not any("{dataset}" in what for what in needs)
    assert not needs["a GPU"].required


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"columns": [{"dataset": "nq2", "metric": "f1"}]}, "did you mean 'nq'"),
        ({"compare_with": "Dual"}, "compare_with"),
        ({"datasetz": {}}, "did you mean 'datasets'"),
        ({"rows": [{"method": "a", "retriever": {"retriever": "naive"}, "index": "bass"}]}, "did you mean 'base'"),
        ({"rows": [{"method": "a", "published": [1.0]}]}, "1 published numbers for 8 columns"),
        ({"rows": [{"metod": "a"}]}, "metod"),
        ({"columns": [{"dataset": "nq", "metric": "exact_mach"}]}, "did you mean 'exact_match'"),
        ({"columns": [{"dataset": "nq", "metric": "winz:overall"}]}, "did you mean 'wins:overall'"),
        ({"columns": [{"dataset": "nq"}]}, "a column's metric '' is unknown"),
        ({"columns": [{"dataset": "nq", "metric": "minutes:answer"}]}, "did you mean 'minutes:answers'"),
        ({"columns": [{"dataset": "nq", "metric": "wins:overall"}]}, "no judge, or no method in compare_with"),
        ({"columns": [{"dataset": "nq", "metric": "judge"}]}, "names no judge"),
        ({"columns": [{"dataset": "nq", "metric": "recall@5"}]}, "has nothing to be found in it"),
    ],
)
def test_a_wrong_recipe_is_refused(change: dict[str, object], message: str, tmp_path: Path) -> None:
    values = load_yaml(recipe_folder() / "dual-table1.yaml") | change
    path = tmp_path / "mine.yaml"
    path.write_text(json.dumps(values))
    with pytest.raises(ConfigError, match=message):
        load_recipe(str(path))


def test_an_unknown_recipe_is_named() -> None:
    with pytest.raises(ConfigError, match="did you mean 'dual-table1'"):
        load_recipe("dual-tabel1")


def test_dataset_marks_are_filled_at_any_depth() -> None:
    values = {"a": ["runs/{dataset}/x", {"b": "{dataset}"}], "c": 1}
    assert filled(values, "nq") == {"a": ["runs/nq/x", {"b": "nq"}], "c": 1}


def test_chinese_is_embedded_by_a_chinese_model() -> None:
    recipe = load_recipe("qmkgf-table2")
    models = {name: recipe.index_values("untuned", name)["embedder"]["model"] for name in recipe.datasets}
    assert models == {
        "squad": "BAAI/bge-large-en-v1.5",
        "iirc": "BAAI/bge-large-en-v1.5",
        "cultour": "BAAI/bge-large-zh-v1.5",
    }
    needs = {need.what: need for need in needs_of(recipe, None)}
    assert {f"embedding model {model}" for model in models.values()} <= needs.keys()
    assert "bge-large-zh-v1.5" in needs["runs/qmkgf-cultour/embedder"].how


def test_methods_without_software_show_the_paper_s_numbers_alone() -> None:
    recipe = replace(load_recipe("dual-table3"), rows=(Row("GraphRAG", published=(1.5, None)),))
    document = as_markdown(recipe, {})
    assert "| GraphRAG | 1.50 / - | - / - |" in document
    Console(width=200).print(side_by_side(recipe, {}))
    assert Column("nq", "f1").heading == "nq f1"
    assert Recipe().runnable == ()


def test_stand_ins(embedder) -> None:
    scores = EmbeddingScorer(embedder).score(["a town", "a town", "a cat"], ["a city", "a dog", "a dog"])
    assert scores[0] > scores[1]
    verdicts = ContainsJudge()(["q", "q"], [["Riga"], ["Riga", "Lviv"]], ["He was born in Riga.", "Paris"])
    assert [verdict.correct for verdict in verdicts] == [True, False]
    (one, even) = CountingJudge()(["q", "q"], ["Rain fell. Snow came.", "x"], ["one two three four five six", "x"])
    assert (one.scores["diversity"], one.scores["comprehensiveness"]) == (1.0, 0.0)
    assert set(even.scores.values()) == {0.5}


def test_remembered_vectors_are_the_embedder_s(embedder: Embedder) -> None:
    remembering = RememberingEmbedder(embedder)
    texts = ["a town", "a city", "a town"]
    assert torch.allclose(remembering.encode(texts), embedder.encode(texts), atol=1e-6)
    assert torch.allclose(remembering.encode(["a city", "rain"]), embedder.encode(["a city", "rain"]), atol=1e-6)
    assert torch.allclose(remembering.encode_queries(texts), embedder.encode_queries(texts), atol=1e-6)
    assert remembering.encode([]).shape == (0, embedder.dimension)
    assert remembering.fingerprint == embedder.fingerprint


@pytest.mark.slow
@pytest.mark.parametrize("name", recipe_names())
def test_every_recipe_runs_end_to_end(name: str, tmp_path_factory: pytest.TempPathFactory, capsys) -> None:
    shared = tmp_path_factory.getbasetemp() / "recipes"
    out = shared / name
    assert main(["reproduce", name, "--smoke", "--out", str(out)]) == 0
    assert "SMOKE RUN" in " ".join(capsys.readouterr().out.split())
    recipe = load_recipe(name)
    written = json.loads((out / "table.json").read_text())
    wanted = {
        (row.method, column.heading)
        for row in recipe.runnable
        for column in recipe.columns
        if column.metric != "meteor" and not (column.metric.startswith("wins:") and row.method == recipe.compare_with)
    }
    assert {(cell["method"], cell["column"]) for cell in written["cells"]} == wanted
    assert main(["reproduce", name, "--smoke", "--out", str(out)]) == 0


class OneText(SmokeMaterials):
    """The demo documents as one text."""

    def dataset(self, name: str) -> Dataset:
        return as_one_text(super().dataset(name))


def test_answers_are_measured_over_a_corpus_of_one_text(tmp_path: Path) -> None:
    recipe = Recipe(
        datasets={"towns": DataSpec(one_text=True)},
        indexes={"base": {"chunks": {"tokens": 200}, "query_graph": None, "knowledge_graph": None}},
        columns=(Column("towns", "f1"), Column("towns", "minutes:total"), Column("towns", "tokens:construction")),
        rows=(Row("BM25", {"retriever": "bm25"}),),
    )
    cells = run_recipe(recipe, OneText(recipe), RunPlaces(tmp_path / "run", tmp_path / "indexes"), ["towns"])
    values = {recipe.columns[number].metric: cell.value for (_, number), cell in cells.items()}
    assert values["f1"] > 0
    assert values["minutes:total"] > 0
    assert values["tokens:construction"] == 0


def test_a_run_with_another_index_is_not_continued(tmp_path: Path) -> None:
    recipe = Recipe(
        datasets={"towns": DataSpec()},
        indexes={"base": {"chunks": {"tokens": 200}, "query_graph": None, "knowledge_graph": None}},
        columns=(Column("towns", "f1"),),
        rows=(Row("BM25", {"retriever": "bm25"}),),
    )
    places = RunPlaces(tmp_path / "run", tmp_path / "indexes")
    made = run_recipe(recipe, SmokeMaterials(recipe), places, ["towns"])
    assert run_recipe(recipe, SmokeMaterials(recipe), places, ["towns"]) == made
    other = replace(recipe, indexes={"base": recipe.indexes["base"] | {"chunks": {"tokens": 150}}})
    with pytest.raises(InputError, match=r"chunks\.tokens is 200 there and 150 now"):
        run_recipe(other, SmokeMaterials(other), places, ["towns"])


def test_smoke_runs_stay_apart_from_real_ones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("qgrag.cli.reproduce.recipe_names", lambda: ["dual-table3", "fg-table2"])
    places: list[RunPlaces] = []

    def run(recipe: Recipe, materials: SmokeMaterials, where: RunPlaces, *_: object, **__: object) -> dict[Any, Cell]:
        where.out.mkdir(parents=True)
        places.append(where)
        return {}

    monkeypatch.setattr("qgrag.cli.reproduce.run_recipe", run)
    for more in (["all"], ["fg-table5"], ["fg-table5", "--out", "mine/run"], ["all", "--out", "mine/all"]):
        assert main(["reproduce", *more, "--smoke"]) == 0
    assert [(str(where.out), str(where.indexes)) for where in places] == [
        ("runs/smoke/dual-table3", "runs/smoke/indexes"),
        ("runs/smoke/fg-table2", "runs/smoke/indexes"),
        ("runs/smoke/fg-table5", "runs/smoke/fg-table5/indexes"),
        ("mine/run", "mine/run/indexes"),
        ("mine/all/dual-table3", "mine/all/indexes"),
        ("mine/all/fg-table2", "mine/all/indexes"),
    ]


def test_list_and_check(capsys, tmp_path: Path) -> None:
    assert main(["reproduce", "--list", "--data", str(tmp_path)]) == 0
    printed = capsys.readouterr().out
    assert "qcg-table1" in printed
    assert "Qwen/Qwen2.5-72B-Instruct" in printed
    assert "qmkgf-table7" in printed
    assert main(["reproduce", "dual-table3", "--check", "--data", str(tmp_path)]) == 0
    assert "what it needs" in capsys.readouterr().out
    assert main(["reproduce", "dual-table3", "--data", str(tmp_path), "--out", str(tmp_path / "run")]) == 1
    assert "Something is missing" in " ".join(capsys.readouterr().out.split())
    assert not (tmp_path / "run").exists()
    assert main(["reproduce"]) == 2
