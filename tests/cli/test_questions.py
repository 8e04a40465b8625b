"""`qgrag questions` over corpora that have no questions of their own."""

import json
from pathlib import Path

import pytest

from qgrag.cli.main import main
from qgrag.evaluation.datasets import load_dataset
from tests.llm.server import Answer, Call, say, serving

TEXT = "Clara Schumann met Johannes Brahms in Hamburg. Joseph Joachim played in London."


def ask(out: Path, dataset: str, data: Path, questions: int = 2) -> int:
    size = ["--qfs.users", "2", "--qfs.tasks", "1", "--qfs.questions", str(questions)]
    return main(["questions", "--dataset", dataset, "--data", str(data), "--out", str(out), *size])


def test_a_folder_of_texts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder, out = tmp_path / "docs", tmp_path / "qfs.jsonl"
    folder.mkdir()
    (folder / "music.txt").write_text(TEXT)
    assert ask(out, "jsonl", folder) == 0
    assert "4 questions, by rules" in capsys.readouterr().out
    questions = load_dataset("jsonl", folder, out).questions
    assert [(q.id, q.type, q.gold) for q in questions] == [
        (f"qfs-{user}-0-{place}", "qfs", ()) for user in range(2) for place in range(2)
    ]


def test_a_publisher_s_corpus_alone(tmp_path: Path) -> None:
    article = {"title": "Music", "body": TEXT, "url": "example.org/a"}
    (tmp_path / "corpus.json").write_text(json.dumps([article]))
    assert ask(tmp_path / "qfs.jsonl", "multihop-rag", tmp_path) == 0
    assert len(load_dataset("multihop-rag", tmp_path, tmp_path / "qfs.jsonl").questions) == 4


def test_fewer_topics_than_tasks_are_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.txt").write_text("Clara Schumann sang.")
    assert ask(tmp_path / "few.jsonl", "jsonl", tmp_path / "a.txt", questions=3) == 0
    assert "3 questions of the 6 asked for, by rules" in capsys.readouterr().out


def test_a_corpus_without_topics_writes_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.txt").write_text("It rained a lot.")
    assert ask(tmp_path / "none.jsonl", "jsonl", tmp_path / "a.txt") != 0
    assert "no question could be made about this corpus" in capsys.readouterr().err
    assert not (tmp_path / "none.jsonl").exists()


def test_a_spent_budget_writes_nothing_and_pays_for_nothing_twice(tmp_path: Path, capsys) -> None:
    (tmp_path / "a.txt").write_text(TEXT)
    users = {"users": [{"user": f"reader {n}", "tasks": ["to learn"]} for n in range(2)]}

    def behave(call: Call) -> Answer:
        return say(json.dumps(users if "reader" not in call.prompt else {"questions": ["What is told?"]}))

    with serving(behave) as server:
        run = [
            *("questions", "--dataset", "jsonl", "--data", str(tmp_path / "a.txt"), "--out", str(tmp_path / "q.jsonl")),
            *("--llm-base-url", server.url, "--llm-model", "stub", "--qfs.users", "2", "--qfs.tasks", "1"),
        ]
        assert main([*run, "--max-calls", "2"]) != 0
        assert "the budget is spent" in " ".join(capsys.readouterr().err.split())
        assert not (tmp_path / "q.jsonl").exists()
        assert main(run) == 0
        assert len(server.calls) == 3
