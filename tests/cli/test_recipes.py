"""A recipe of one's own, run against a chat endpoint on loopback."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from qgrag.cli.main import main
from tests.llm.server import ChatServer, say, serving

TOWNS = {"Graz": "Mur", "Linz": "Danube", "Bregenz": "Lake Constance"}


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[ChatServer]:
    for name in ("OPENAI_API_KEY", "QGRAG_LLM_API_KEY", "OPENAI_BASE_URL", "QGRAG_DATA"):
        monkeypatch.delenv(name, raising=False)
    with serving(lambda call: say("Mur [1]")) as running:
        yield running


@pytest.fixture
def command(server: ChatServer, tmp_path: Path) -> list[str]:
    """`qgrag reproduce` of a table of three questions."""
    folder = tmp_path / "data" / "towns"
    folder.mkdir(parents=True)
    documents = [{"id": town, "text": f"{town} lies on the {water}."} for town, water in TOWNS.items()]
    questions = [
        {"id": town, "question": f"What does {town} lie on?", "documents": [town], "answer": water}
        for town, water in TOWNS.items()
    ]
    for name, rows in (("corpus", documents), ("questions", questions)):
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    recipe = {
        "paper": "Mine",
        "table": "Table 1",
        "llm": {"model": "stub", "base_url": server.url, "pace": {"concurrency": 1}},
        "datasets": {"towns": {"format": "jsonl", "folder": "towns"}},
        "indexes": {"base": {"query_graph": None, "knowledge_graph": None}},
        "columns": [{"dataset": "towns", "metric": "exact_match"}, {"dataset": "towns", "metric": "tokens:answers"}],
        "rows": [{"method": "BM25", "retriever": {"retriever": "bm25"}}],
    }
    (tmp_path / "mine.yaml").write_text(json.dumps(recipe))
    return [
        *("reproduce", str(tmp_path / "mine.yaml")),
        *("--data", str(tmp_path / "data"), "--out", str(tmp_path / "run")),
    ]


def test_a_spent_budget_stops_the_table_and_leaves_no_holes(
    command: list[str], server: ChatServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*command, "--max-calls", "2"]) != 0
    assert "the budget is spent" in " ".join(capsys.readouterr().err.split())
    assert not (tmp_path / "run" / "table.json").exists()
    assert main(command) == 0
    assert len(server.calls) == 3
    cells = {
        cell["column"]: cell["value"] for cell in json.loads((tmp_path / "run" / "table.json").read_text())["cells"]
    }
    assert cells["towns exact_match"] == pytest.approx(100 / 3)
