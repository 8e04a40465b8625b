"""Answers, judges and recipes from the command line, with a chat endpoint on loopback."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from qgrag.cli.main import main
from qgrag.generation.pairwise import CRITERIA
from tests.llm.server import Answer, Call, ChatServer, say, serving

QUESTIONS = [
    {"id": "1", "question": "Where was Euler born?", "documents": ["euler"], "answer": "Basel", "type": "single"},
    {
        "id": "2",
        "question": "What flows through Dresden?",
        "documents": ["elbe"],
        "answer": "The Elbe",
        "type": "single",
    },
    {"id": "3", "question": "Who won the race?", "documents": [], "answer": "Insufficient information", "type": "null"},
]
DOCUMENTS = [
    {"id": "euler", "title": "Euler", "text": "Leonhard Euler was born in Basel in 1707."},
    {"id": "elbe", "title": "Elbe", "text": "The Elbe flows through Dresden."},
]


def behave(call: Call) -> Answer:
    """A verdict, a comparison or an answer, as the call asks for."""
    if "Reference:" in call.prompt:
        return say(json.dumps({"reason": "r", "correct": "Answer: Basel" in call.prompt}))
    if "Answer 1:" in call.prompt:
        return say(json.dumps({"reason": "r", **dict.fromkeys(CRITERIA, "1")}))
    return say("Basel [1]")


@pytest.fixture(autouse=True)
def no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "QGRAG_LLM_API_KEY", "OPENAI_BASE_URL", "QGRAG_DATA"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def server() -> Iterator[ChatServer]:
    with serving(behave) as running:
        yield running


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A folder of data sets with one in it, and the configuration of a small index."""
    folder = tmp_path / "data" / "towns"
    folder.mkdir(parents=True)
    for name, rows in (("corpus", DOCUMENTS), ("questions", QUESTIONS)):
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "index.yaml").write_text("query_graph: null\nknowledge_graph: null\n")
    return folder


def command(data: Path, *more: str) -> list[str]:
    root = data.parent.parent
    return [
        *("eval", "--dataset", "jsonl", "--data", str(data), "--index-config", str(root / "index.yaml")),
        *("--retrievers", "llm-only,bm25", "--out", str(root / "run"), "--answer", *more),
    ]


def model(server: ChatServer) -> tuple[str, ...]:
    return ("--llm-base-url", server.url, "--llm-model", "stub")


def test_answers_are_written_judged_and_kept(data: Path, server: ChatServer, capsys) -> None:
    assert main(command(data, *model(server), "--judge", "same")) == 0
    printed = capsys.readouterr().out
    assert "answers, overall: 3 questions" in printed
    summary = json.loads((data.parent.parent / "run" / "answers.json").read_text())
    assert summary["retrievers"]["bm25"]["overall"]["judge"]["mean"] == 1
    assert summary["retrievers"]["bm25"]["single"]["exact_match"]["mean"] == 0.5
    assert summary["costs"]["llm-only"]["calls"] == 1
    asked = len(server.calls)
    assert main(command(data, *model(server), "--judge", "same")) == 0
    assert len(server.calls) == asked


def test_answers_are_compared_in_both_orders(data: Path, server: ChatServer, capsys) -> None:
    assert main(command(data, *model(server), "--judge", "same", "--style", "long", "--compare", "bm25")) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert "bm25-vs-llm-only" in printed
    summary = json.loads((data.parent.parent / "run" / "answers.json").read_text())
    rates = summary["comparisons"]["bm25-vs-llm-only"]
    assert rates["rates"]["overall"]["mean"] == 0.5
    assert rates["position_bias"]["overall"] == 1


def test_rules_answer_without_a_model(data: Path, capsys) -> None:
    assert main(command(data, "--reader", "local")) == 0
    assert "answers, overall" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ((), "--answer and --llm-steps need a language model"),
        (("--reader", "local", "--judge", "same"), "--judge same needs a language model"),
        (("--reader", "local", "--compare", "bm25"), "--compare needs a judge"),
        (("--reader", "local", "--judge", "same", "--compare", "bm2"), "did you mean 'bm25'?"),
        (("--reader", "local", "--judge", "lost.yaml"), "lost.yaml"),
        (("--reader", "local", "--retrievers", "bm26"), "did you mean 'bm25'?"),
        (("--reader", "local", "--passages", "0"), "answer.max_passages"),
        (("--reader", "local", "--passages", "20"), "extend the cut-offs: --ks '[1, 2, 5, 8, 10, 20]'"),
    ],
)
def test_what_is_missing_is_named_before_anything_is_done(
    data: Path, more: tuple[str, ...], message: str, capsys
) -> None:
    assert main(command(data, *more)) == 2
    assert message in " ".join(capsys.readouterr().err.split())
    assert not (data.parent.parent / "run" / "index").exists()


def test_measures_of_answers_need_answers(data: Path, capsys) -> None:
    run = [argument for argument in command(data, "--judge", "same") if argument != "--answer"]
    assert main(run) == 2
    assert "--judge is about answers: add --answer" in capsys.readouterr().err


def test_chinese_is_not_scored_as_english(data: Path, capsys) -> None:
    question = {"id": "1", "question": "欧拉出生在哪里?", "documents": ["euler"], "answer": "巴塞尔"}
    (data / "questions.jsonl").write_text(json.dumps(question) + "\n")
    assert main(command(data, "--reader", "local")) == 2
    assert "--language zh" in " ".join(capsys.readouterr().err.split())
    assert not (data.parent.parent / "run" / "run.json").exists()


def test_other_data_leave_the_run_s_index_as_it_is(data: Path, tmp_path: Path, capsys) -> None:
    assert main(command(data, "--reader", "local")) == 0
    before = {path: path.read_bytes() for path in (tmp_path / "run" / "index").rglob("*") if path.is_file()}
    (data / "corpus.jsonl").write_text(json.dumps(DOCUMENTS[0]) + "\n")
    assert main(command(data, "--reader", "local")) == 2
    assert "dataset.files" in " ".join(capsys.readouterr().err.split())
    assert {path: path.read_bytes() for path in (tmp_path / "run" / "index").rglob("*") if path.is_file()} == before


def test_another_temperature_is_another_run(data: Path, server: ChatServer, tmp_path: Path, capsys) -> None:
    config = tmp_path / "llm.yaml"
    plain = {"model": "stub", "base_url": server.url}
    config.write_text(json.dumps(plain))
    assert main(command(data, "--llm", str(config))) == 0
    config.write_text(json.dumps({**plain, "sampling": {"temperature": 0.9}}))
    assert main(command(data, "--llm", str(config))) == 2
    assert "reader.fingerprint" in " ".join(capsys.readouterr().err.split())


def test_a_spent_budget_stops_the_run_and_the_next_one_asks_the_rest(data: Path, server: ChatServer, capsys) -> None:
    run = command(data, *model(server), "--judge", "same")
    assert main([*run, "--max-calls", "2"]) != 0
    assert "the budget is spent" in " ".join(capsys.readouterr().err.split())
    assert main(run) == 0
    summary = json.loads((data.parent.parent / "run" / "answers.json").read_text())
    assert summary["costs"]["bm25"]["failed"] == summary["costs"]["llm-only"]["failed"] == 0
    assert len({call.prompt for call in server.calls}) == len(server.calls)


def test_an_index_that_is_named_is_read_and_never_rebuilt(data: Path, tmp_path: Path, capsys) -> None:
    other = tmp_path / "other.jsonl"
    other.write_text(json.dumps({"id": "other", "text": "Something else."}) + "\n")
    config = str(tmp_path / "index.yaml")
    assert main(["index", str(other), "--out", str(tmp_path / "mine"), "--config", config]) == 0
    before = {path: path.read_bytes() for path in (tmp_path / "mine").rglob("*") if path.is_file()}
    run = [
        *("eval", "--dataset", "jsonl", "--data", str(data), "--retrievers", "bm25", "--out", str(tmp_path / "run")),
        *("--index", str(tmp_path / "mine")),
    ]
    assert main(run) == 2
    printed = " ".join(capsys.readouterr().err.split())
    assert "is not an index of this corpus (2 documents are not in it, 0 differ, 1 are not in the corpus)" in printed
    assert {path: path.read_bytes() for path in (tmp_path / "mine").rglob("*") if path.is_file()} == before
    assert main([*run, "--index-config", config]) == 2
    assert "leave one out" in " ".join(capsys.readouterr().err.split())


def test_a_recipe_of_one_s_own_runs_on_an_endpoint(data: Path, server: ChatServer, capsys) -> None:
    root = data.parent.parent
    recipe = {
        "paper": "Mine",
        "table": "Table 1",
        "llm": {"model": "stub", "base_url": server.url},
        "judge": {"model": "stub", "base_url": server.url},
        "datasets": {"towns": {"format": "jsonl", "folder": "towns"}, "lost": {"format": "jsonl", "folder": "lost"}},
        "indexes": {"base": {"query_graph": None, "knowledge_graph": None}},
        "columns": [
            {"dataset": "towns", "metric": "judge", "group": "single"},
            {"dataset": "towns", "metric": "recall@1"},
            {"dataset": "towns", "metric": "tokens:answers"},
            {"dataset": "lost", "metric": "judge"},
        ],
        "rows": [
            {"method": "BM25", "retriever": {"retriever": "bm25"}, "published": [80.0, None, 1000, 1.0]},
            {"method": "Other", "published": [70.0, 1.0, 2.0, 3.0]},
        ],
    }
    path = root / "mine.yaml"
    path.write_text(json.dumps(recipe))
    run = ["reproduce", str(path), "--data", str(root / "data"), "--out", str(root / "run")]
    assert main(run) == 1
    assert not server.calls
    capsys.readouterr()
    assert main([*run, "--partial"]) == 0
    cells = {c["column"]: c["value"] for c in json.loads((root / "run" / "table.json").read_text())["cells"]}
    assert cells == {"towns single judge": 100, "towns recall@1": 100, "towns tokens:answers": 45}
    assert "| BM25 | 80.00 / 100.00" in (root / "run" / "table.md").read_text()
    asked = len(server.calls)
    assert main([*run, "--partial"]) == 0
    assert len(server.calls) == asked


def test_steps_of_retrieval_by_another_model_or_prompt_are_another_run(
    data: Path, server: ChatServer, tmp_path: Path, capsys
) -> None:
    steps = tmp_path / "mine.yaml"
    index = tmp_path / "graph.yaml"
    index.write_text("query_graph: null\n")
    run = [
        *("eval", "--dataset", "jsonl", "--data", str(data), "--index-config", str(index), "--llm-steps"),
        *("--retrievers", str(steps), "--out", str(tmp_path / "run"), *model(server)),
    ]
    steps.write_text("retriever: dual\nllm_steps: [entities]\n")
    assert main(run) == 0
    steps.write_text("retriever: dual\nllm_steps: []\n")
    assert main(run) == 2
    assert "retrievers.mine.llm_steps is ['entities'] there and None now" in " ".join(capsys.readouterr().err.split())
    steps.write_text("retriever: dual\nllm_steps: [entities]\n")
    assert main([*run, "--llm-model", "other"]) == 2
    assert "model.name is 'stub' there and 'other' now" in " ".join(capsys.readouterr().err.split())
    assert main([*run, "--prompts.language", "French"]) == 2
    assert "prompts" in capsys.readouterr().err
    assert main(run) == 0
