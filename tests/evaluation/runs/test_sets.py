"""One experiment over several data sets."""

import json
from pathlib import Path

import numpy as np
import pytest

from qgrag.cli.main import main
from qgrag.errors import ConfigError, InputError
from qgrag.evaluation.bootstrap import BootstrapConfig
from qgrag.evaluation.datasets.sources import load_sets
from qgrag.evaluation.runs.sets import shown_metrics, summarise_sets

TOWNS = {"elbe": "The Elbe flows through Dresden.", "euler": "Leonhard Euler was born in Basel in 1707."}
RIVERS = {"rhine": "The Rhine flows through Cologne.", "main": "The Main flows through Frankfurt."}
METRICS = ["recall@5", "all_evidence@5"]


def records(values: list[float]) -> list[dict[str, object]]:
    return [{"metrics": {"recall@5": v, "all_evidence@5": float(v == 1)}} for v in values] + [{"metrics": None}]


def test_sets_weigh_alike_in_the_mean_and_its_interval_draws_them_apart() -> None:
    rng = np.random.default_rng(1)
    many, few = rng.uniform(size=400).tolist(), rng.uniform(size=25).tolist()
    summary = summarise_sets({"a": {"x": records(many)}, "b": {"x": records(few)}}, METRICS, BootstrapConfig(2000))
    assert summary.questions == {"a": 400, "b": 25}
    figures = {name: values["recall@5"] for name, values in summary.retrievers["x"].items()}
    assert figures["mean"]["mean"] == pytest.approx((np.mean(many) + np.mean(few)) / 2)
    width = {name: value["high"] - value["low"] for name, value in figures.items()}
    assert width["mean"] == pytest.approx(np.hypot(width["a"], width["b"]) / 2, rel=0.1)


def test_a_set_without_gold_is_named() -> None:
    with pytest.raises(ConfigError, match="set 'b': no question has gold documents"):
        summarise_sets({"a": {"x": records([1.0])}, "b": {"x": records([])}}, METRICS, BootstrapConfig(10))


def test_the_cut_off_that_is_shown_is_one_of_the_run() -> None:
    assert shown_metrics([1, 2, 5, 8, 10]) == METRICS
    assert shown_metrics([1, 3, 8]) == ["recall@3", "all_evidence@3"]
    assert shown_metrics([8, 10]) == ["recall@8", "all_evidence@8"]


@pytest.fixture
def sets(tmp_path: Path) -> Path:
    for name, texts in (("towns", TOWNS), ("rivers", RIVERS)):
        folder = tmp_path / name
        folder.mkdir()
        corpus = [{"id": id_, "text": text} for id_, text in texts.items()]
        questions = [{"id": id_, "question": f"Where is the {id_}?", "documents": [id_]} for id_ in texts]
        for file, rows in (("corpus", corpus), ("questions", questions)):
            (folder / f"{file}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "index.yaml").write_text("query_graph: null\nknowledge_graph: null\n")
    path = tmp_path / "sets.yaml"
    path.write_text(
        f"towns: {{dataset: jsonl, data: {tmp_path / 'towns'}}}\n"
        f"rivers: {{dataset: jsonl, data: {tmp_path / 'rivers'}, limit: 1}}\n"
    )
    return path


def test_several_sets_give_one_table_and_one_plot_and_resume(sets: Path, tmp_path: Path, capsys) -> None:
    out = tmp_path / "runs"
    command = ["eval", "--sets", str(sets), "--index-config", str(tmp_path / "index.yaml"), "--out", str(out)]
    assert main([*command, "--retrievers", "bm25"]) == 0
    assert "all sets" in capsys.readouterr().out
    before = (out / "towns" / "results-bm25.jsonl").read_bytes()
    assert main([*command, "--retrievers", "bm25,naive"]) == 0
    assert (out / "towns" / "results-bm25.jsonl").read_bytes() == before
    summary = json.loads((out / "sets.json").read_text())
    assert summary["questions"] == {"towns": 2, "rivers": 1}
    assert set(summary["retrievers"]) == {"bm25", "naive"}
    assert summary["retrievers"]["bm25"]["mean"]["recall@5"] == {"mean": 1, "low": 1, "high": 1}
    assert "| retriever | towns (2) | rivers (1) | mean |" in (out / "table.md").read_text()
    assert (out / "sets.png").read_bytes().startswith(b"\x89PNG")
    assert json.loads((out / "rivers" / "summary.json").read_text())["counts"]["overall"]["questions"] == 1


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--dataset", "demo"], "--dataset belongs to one data set"),
        (["--limit", "3"], "--limit belongs to one data set"),
    ],
)
def test_flags_of_one_set_do_not_go_with_several(sets: Path, more: list[str], message: str, capsys) -> None:
    assert main(["eval", "--sets", str(sets), "--out", "never", *more]) == 2
    assert message in capsys.readouterr().err
    assert main(["eval", "--out", "never"]) == 2
    assert "name a data set (--dataset), or a file of several (--sets)" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("", ConfigError, "holds no data set"),
        ("a: demo", ConfigError, "set 'a': expected keys and values with a key 'dataset'"),
        ("mean: {dataset: demo}", ConfigError, "the name names a folder"),
        ("../a: {dataset: demo}", ConfigError, "the name names a folder"),
        ("a: {dataset: demo, limt: 3}", ConfigError, "did you mean 'limit'"),
        ("a: {dataset: dmo}", InputError, "did you mean 'demo'"),
        ("a: {dataset: jsonl, data: lost}", InputError, "lost: no such file or folder"),
        ("a: {dataset: demo, index: lost}", InputError, "lost: no such folder"),
    ],
)
def test_what_is_wrong_with_a_set_is_named_before_any_is_run(
    tmp_path: Path, text: str, error: type[Exception], message: str
) -> None:
    path = tmp_path / "sets.yaml"
    path.write_text(text)
    with pytest.raises(error, match=message):
        load_sets(path)
