import json
import os
import subprocess
import sys

import pytest

from qgrag.cli.main import COMMANDS, main


@pytest.fixture
def notes_folder(tmp_path):
    folder = tmp_path / "notes"
    (folder / "rivers").mkdir(parents=True)
    (folder / "rivers" / "rhine.md").write_text("# The Rhine\n\nThe Rhine flows through Basel and Cologne.\n")
    (folder / "euler.txt").write_text("Leonhard Euler was born in Basel in 1707.")
    return folder


@pytest.mark.parametrize("command", COMMANDS)
def test_help_of_every_command_teaches(command, capsys):
    try:
        code = main([command, "--help"])
    except SystemExit as stop:
        code = stop.code
    assert code == 0
    assert f"usage: qgrag {command}" in capsys.readouterr().out


def test_index_retrieve_info_check(notes_folder, tmp_path, capsys):
    out = str(tmp_path / "index")
    assert main(["index", str(notes_folder), "--out", out, "--dry-run"]) == 0
    assert "2 chunks in all, 2 of them to embed" in " ".join(capsys.readouterr().out.split())
    assert main(["index", str(notes_folder), "--out", out]) == 0
    assert "2 added" in capsys.readouterr().out
    assert main(["index", str(notes_folder), "--out", out]) == 0
    assert "nothing has changed" in " ".join(capsys.readouterr().out.split())

    assert main(["retrieve", out, "--top-k", "1", "Where was Euler born?", "--explain"]) == 0
    printed = capsys.readouterr().out
    assert "euler.txt" in printed
    assert "Leonhard Euler" in printed

    queries, hits = tmp_path / "q.jsonl", tmp_path / "hits.jsonl"
    queries.write_text('{"id": "a", "question": "Which cities lie on the Rhine?"}\n\n{"query": "Who was Euler?"}\n')
    assert main(["retrieve", out, "--queries", str(queries), "--out", str(hits), "--retriever", "bm25"]) == 0
    rows = [json.loads(line) for line in hits.read_text().splitlines()]
    assert [row["id"] for row in rows] == ["a", "3"]
    assert rows[0]["hits"][0]["document_id"] == "rivers/rhine.md"

    assert main(["info", out]) == 0
    assert "all-MiniLM-L6-v2" in capsys.readouterr().out
    assert main(["check", out]) == 0
    assert "0 problems" in capsys.readouterr().out


def test_demo_evaluation_writes_table_figures_and_plot(tmp_path, capsys, demo_folder):
    out = tmp_path / "run"
    command = ["eval", "--dataset", "demo", "--out", str(out), "--index", str(demo_folder)]
    assert main([*command, "--retrievers", "naive,bm25"]) == 0
    printed = capsys.readouterr().out
    assert "naive" in printed
    summary = json.loads((out / "summary.json").read_text())
    assert set(summary["retrievers"]) == {"naive", "bm25"}
    assert set(summary["retrievers"]["bm25"]) == {"overall", "single", "multi"}
    for metric in ("recall@5", "all_evidence@8", "mrr@10", "ndcg@5", "hit@1"):
        assert 0 <= summary["retrievers"]["naive"]["multi"][metric] <= 1
    assert (out / "recall.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["retreive"], "command 'retreive' is unknown; did you mean 'retrieve'?"),
        (["index", "{missing}", "--out", "{out}"], "no such file or folder"),
        (
            ["index", "{notes}", "--out", "{out}", "--config", "{config}"],
            "key 'chunks.tokenz' is unknown; did you mean",
        ),
        (["retrieve", "{missing}", "a"], "no such folder; build an index there"),
        (["info", "{notes}"], "holds no manifest.json"),
    ],
)
def test_bad_input_is_named_without_a_traceback(arguments, message, notes_folder, tmp_path, capsys):
    config = tmp_path / "c.yaml"
    config.write_text("chunks:\n  tokenz: 3\n")
    places = {"missing": tmp_path / "none", "notes": notes_folder, "out": tmp_path / "i", "config": config}
    assert main([argument.format(**places) for argument in arguments]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert "Traceback" not in error


def test_console_script_reports_its_version():
    done = subprocess.run([sys.executable, "-m", "qgrag.cli.main", "--version"], capture_output=True, text=True)
    assert done.stdout.startswith("qgrag 0.")


@pytest.mark.parametrize("arguments", [["--help"], ["eval", "--help"]])
def test_a_reader_that_has_gone_away_gets_no_traceback(arguments: list[str]) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "qgrag.cli.main", *arguments]
    done = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, text=True, check=False)
    os.close(writer)
    assert "Traceback" not in done.stderr
