"""Exit codes over the commands, and what a user reads when something is in the way."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from qgrag.cli.main import main
from tests.llm.server import Answer, Call, ChatServer, fail, say, serving

TEXTS = {"euler": "Leonhard Euler was born in Basel in 1707.", "elbe": "The Elbe flows through Dresden."}
QUESTIONS = [
    {"id": "1", "question": "Where was Euler born?", "documents": ["euler"], "answer": "Basel"},
    {"id": "2", "question": "What flows through Dresden?", "documents": ["elbe"], "answer": "The Elbe"},
]


@pytest.fixture(autouse=True)
def no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "QGRAG_LLM_API_KEY", "OPENAI_BASE_URL", "QGRAG_DATA"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(scope="module")
def room(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a corpus, questions, a configuration and an index."""
    folder = tmp_path_factory.mktemp("room")
    corpus = [{"id": id_, "text": text} for id_, text in TEXTS.items()]
    for name, rows in (("corpus", corpus), ("questions", QUESTIONS)):
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "index.yaml").write_text("query_graph: null\nknowledge_graph: null\n")
    code = main(["index", str(folder / "corpus.jsonl"), "--out", str(folder / "i"), "--config", f"{folder}/index.yaml"])
    assert code == 0
    return folder


@pytest.fixture
def half_deaf() -> Iterator[ChatServer]:
    """An endpoint that answers about Euler and refuses everything else."""

    def behave(call: Call) -> Answer:
        return say("Basel [1]") if "Euler born" in call.prompt else fail(400)

    with serving(behave) as running:
        yield running


def test_0_where_all_was_done(room: Path, tmp_path: Path, capsys) -> None:
    index = str(room / "i")
    assert main(["retrieve", index, "--retriever", "bm25", "Euler"]) == 0
    assert main(["ask", index, "--retriever", "bm25", "Euler", "--out", str(tmp_path / "a.jsonl")]) == 0
    assert main(["info", index]) == 0
    assert main(["check", index]) == 0
    run = ["eval", "--dataset", "jsonl", "--data", str(room), "--index", index, "--retrievers", "bm25"]
    assert main([*run, "--out", str(tmp_path / "run")]) == 0
    assert main(["info", str(tmp_path / "run")]) == 0
    assert "bm25 2 questions retrieved, 0 answered" in " ".join(capsys.readouterr().out.replace("│", "").split())


def test_1_where_a_check_found_damage(room: Path, tmp_path: Path, capsys) -> None:
    config = f"{room}/index.yaml"
    assert main(["index", str(room / "corpus.jsonl"), "--out", str(tmp_path / "i"), "--config", config]) == 0
    file = next((tmp_path / "i").rglob("documents.parquet"))
    file.write_bytes(file.read_bytes()[:-1] + b"!")
    assert main(["check", str(tmp_path / "i")]) == 1
    assert main(["reproduce", "dual-table3", "--data", str(tmp_path)]) == 1


def test_3_where_files_were_left_out_and_info_lists_them(room: Path, tmp_path: Path, capsys) -> None:
    notes = tmp_path / "notes"
    notes.mkdir()
    (notes / "good.txt").write_text(TEXTS["euler"])
    (notes / "bad.pdf").write_bytes(b"%PDF-1.4 broken")
    build = ["index", str(notes), "--out", str(tmp_path / "i"), "--config", f"{room}/index.yaml"]
    assert main(build) == 2
    assert main([*build, "--on-error", "skip"]) == 3
    capsys.readouterr()
    assert main(["info", str(tmp_path / "i")]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert "bad.pdf" in printed
    assert f"to try again: qgrag index {notes} --out {tmp_path / 'i'}" in printed
    (notes / "bad.pdf").unlink()
    assert main(build) == 0
    capsys.readouterr()
    assert main(["info", str(tmp_path / "i")]) == 0
    assert "to try again" not in capsys.readouterr().out


def test_3_where_answers_failed_and_info_lists_them(room: Path, tmp_path: Path, half_deaf: ChatServer, capsys) -> None:
    model = ("--llm-base-url", half_deaf.url, "--llm-model", "stub")
    ask = ["ask", str(room / "i"), "--retriever", "bm25", *model, "--no-cache"]
    assert main([*ask, QUESTIONS[0]["question"]]) == 0
    assert main([*ask, *(q["question"] for q in QUESTIONS)]) == 3
    assert "1 of 2 answers failed" in capsys.readouterr().out
    run = ["eval", "--dataset", "jsonl", "--data", str(room), "--index", str(room / "i"), "--retrievers", "bm25"]
    assert main([*run, "--out", str(tmp_path / "run"), "--answer", *model]) == 3
    capsys.readouterr()
    assert main(["info", str(tmp_path / "run")]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert "answer from bm25 to question 2" in printed
    assert "to try again: qgrag eval --dataset jsonl" in printed


def test_3_where_the_budget_ended_the_run(room: Path, tmp_path: Path, half_deaf: ChatServer, capsys) -> None:
    model = ("--llm-base-url", half_deaf.url, "--llm-model", "stub", "--max-calls", "1")
    run = ["eval", "--dataset", "jsonl", "--data", str(room), "--index", str(room / "i"), "--retrievers", "bm25"]
    assert main([*run, "--out", str(tmp_path / "run"), "--answer", *model]) == 3
    assert "the budget is spent" in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--out", "{room}/none/hits.jsonl"], "there is no folder {room}/none; make it first"),
        (["--out", "{room}"], "is a folder; name a file in it"),
        (["--out", "."], "is a folder; name a file in it"),
        (["--out", "{room}/index.yaml/hits.jsonl"], "is a file, not a folder"),
        (["--explain-html", "{room}/none/why.html"], "there is no folder {room}/none"),
        (["--out", "/dev/full"], "the disk is full; free some space"),
        (["--device", "gpu"], "device 'gpu' is unknown; use auto, cpu, cuda"),
        (["--device", "cuda:99"], "device 'cuda:99' is not on this machine"),
        (["--top-k", "0"], "top_k"),
        (["--batch-size", "0"], "batch"),
        (["--retriever", "bm26"], "did you mean 'bm25'"),
        (["--queries", "{room}/none.jsonl"], "none.jsonl"),
        (["--queries", "{room}"], "{room}: cannot be read: Is a directory"),
    ],
)
def test_2_with_the_remedy_where_retrieve_cannot_be_done(
    room: Path, arguments: list[str], message: str, capsys
) -> None:
    given = [argument.format(room=room) for argument in arguments]
    assert main(["retrieve", str(room / "i"), "--retriever", "bm25", *given, "Euler"]) == 2
    error = capsys.readouterr().err
    assert message.format(room=room) in " ".join(error.split())
    assert "Traceback" not in error


@pytest.mark.parametrize(
    "command",
    [
        ["index", "{room}/corpus.jsonl"],
        ["eval", "--dataset", "jsonl", "--data", "{room}", "--retrievers", "bm25"],
        ["sweep", "--config", "configs/sweep/demo.yaml", "--dataset", "demo"],
        ["data", "pairs", "{room}/i"],
        ["reproduce", "dual-table3", "--smoke"],
        ["questions", "--dataset", "demo"],
    ],
)
def test_2_where_a_file_stands_in_the_way_of_a_folder(room: Path, command: list[str], capsys) -> None:
    given = [argument.format(room=room) for argument in command]
    assert main([*given, "--out", f"{room}/index.yaml/out"]) == 2
    error = " ".join(capsys.readouterr().err.split())
    assert f"{room}/index.yaml is a file" in error


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_2_where_a_folder_may_not_be_written(room: Path, tmp_path: Path, capsys) -> None:
    tmp_path.chmod(0o500)
    hits = str(tmp_path / "hits.jsonl")
    assert main(["retrieve", str(room / "i"), "--retriever", "bm25", "Euler", "--out", hits]) == 2
    assert "cannot be written to" in capsys.readouterr().err


@pytest.mark.parametrize("where", ["/dev/full", "closed pipe"])
def test_2_where_the_output_cannot_be_printed(room: Path, where: str) -> None:
    command = [sys.executable, "-m", "qgrag.cli.main", "retrieve", str(room / "i"), "--retriever", "bm25", "Euler"]
    if where == "closed pipe":
        reader, writer = os.pipe()
        os.close(reader)
    else:
        writer = os.open(where, os.O_WRONLY)
    done = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, text=True, check=False)
    os.close(writer)
    assert done.returncode == 2
    assert len(done.stderr.strip().splitlines()) == 1
    assert ("stopped reading" if where == "closed pipe" else "the disk is full") in done.stderr


def test_130_where_the_user_interrupts(monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    def interrupt(arguments: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr("qgrag.cli.info.run", interrupt)
    assert main(["info", "somewhere"]) == 130
    assert "the same command continues it" in capsys.readouterr().err
