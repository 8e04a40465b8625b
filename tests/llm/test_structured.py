import json
from pathlib import Path

import pytest
from pydantic import BaseModel

from qgrag.llm.config import Pace
from qgrag.llm.usage import measure
from tests.llm.server import Answer, Behaviour, Call, asking, connected, fail, say, serving


class Statement(BaseModel):
    head: str
    tail: str


class Statements(BaseModel):
    statements: list[Statement]


GOOD = json.dumps({"statements": [{"head": "a", "tail": "b"}]})


def takes(*formats: str, status: int = 400) -> Behaviour:
    def behave(call: Call) -> Answer:
        return say(GOOD) if call.format in formats else fail(status, "unknown response_format")

    return behave


@pytest.mark.parametrize("status", [400, 422, 500, 501])
@pytest.mark.parametrize(
    ("formats", "tried"),
    [
        (("json_schema", "json_object", "none"), ["json_schema"]),
        (("json_object", "none"), ["json_schema", "json_object"]),
        (("none",), ["json_schema", "json_object", "none"]),
    ],
)
def test_the_way_is_found_out_once(formats: tuple[str, ...], tried: list[str], status: int) -> None:
    with serving(takes(*formats, status=status)) as server, connected(server) as model:
        completions = model.complete(asking(*map(str, range(10))), Statements, step="test")
        assert all(c.value is not None for c in completions)
        assert [call.format for call in server.calls] == tried + [tried[-1]] * 9


@pytest.mark.parametrize(
    ("heard", "tried"),
    [
        (("json_object", "none"), ["json_schema", "json_object", "json_object"]),
        (("none",), ["json_schema", "json_object", "none", "none"]),
    ],
)
def test_a_format_that_is_ignored_is_given_up(heard: tuple[str, ...], tried: list[str]) -> None:
    with serving(lambda call: say(GOOD if call.format in heard else "Certainly! Here you are.")) as server:
        with connected(server, asks_again=0) as model, measure() as meter:
            completions = model.complete(asking("a", "b"), Statements, step="test")
        assert [c.value is not None for c in completions] == [True, True]
        assert [call.format for call in server.calls] == tried
    assert meter.steps["test"].calls == 2
    assert meter.steps["test"].retries == len(tried) - 2
    assert meter.steps["test"].prompt_tokens == 10 * len(tried)


@pytest.mark.parametrize("text", ['{"statements": [{"head', "<think>So</think>{}", "", "<think>So"])
def test_a_bad_answer_in_the_form_asked_for_is_no_reason_to_give_the_form_up(text: str) -> None:
    with serving(lambda call: say(text, "length")) as server, connected(server, asks_again=0) as model:
        for _ in range(2):
            model.complete(asking("q"), Statements, step="test")
        assert {call.format for call in server.calls} == {"json_schema"}


class Names(BaseModel):
    names: list[str]


def test_each_schema_has_its_own_way() -> None:
    def behave(call: Call) -> Answer:
        if call.format == "json_schema" and "names" in json.dumps(call.body["response_format"]):
            return fail(400, "keyword not supported")
        return say('{"names": ["a"]}' if "other" in call.prompt else GOOD)

    with serving(behave) as server, connected(server) as model:
        for _ in range(2):
            assert model.complete(asking("q"), Statements, step="test")[0].value is not None
            assert model.complete(asking("other"), Names, step="test")[0].value is not None
        formats = [call.format for call in server.calls]
    assert formats == ["json_schema", "json_schema", "json_object", "json_schema", "json_object"]


def test_the_schema_is_sent_strictly_and_in_words() -> None:
    with serving(takes("none")) as server, connected(server) as model:
        model.complete(asking("q"), Statements, step="test")
        strict, loose, words = (call.body for call in server.calls)
    schema = strict["response_format"]["json_schema"]["schema"]
    assert schema["additionalProperties"] is False
    assert schema["$defs"]["Statement"]["required"] == ["head", "tail"]
    assert loose["response_format"]["schema"] == schema
    assert "statements" in words["messages"][-1]["content"]
    assert "response_format" not in words


def test_one_way_can_be_demanded() -> None:
    with serving(takes("json_schema")) as server, connected(server, structured="json_object") as model:
        (completion,) = model.complete(asking("q"), Statements, step="test")
        assert completion.error is not None
        assert completion.error.kind == "request"
        assert [call.format for call in server.calls] == ["json_object"]


def test_a_server_error_is_one_once_the_way_is_known() -> None:
    def behave(call: Call) -> Answer:
        return fail(500) if call.number == 1 else say(GOOD)

    with serving(behave) as server, connected(server, pace=Pace(concurrency=1, max_retries=1)) as model:
        completions = model.complete(asking("a", "b"), Statements, step="test")
        assert all(c.value is not None for c in completions)
        assert [call.format for call in server.calls] == ["json_schema"] * 3


def test_an_invalid_answer_is_asked_again_with_its_error() -> None:
    def behave(call: Call) -> Answer:
        return say('{"statements": "none"}') if call.number == 0 else say(GOOD)

    with serving(behave) as server, connected(server) as model, measure() as meter:
        (completion,) = model.complete(asking("q"), Statements, step="test", owners=["chunk 1"])
        assert completion.parsed(Statements) == Statements(statements=[Statement(head="a", tail="b")])
        assert completion.asked_again == 1
        turns = server.calls[1].body["messages"]
    assert [turn["role"] for turn in turns] == ["user", "assistant", "user"]
    assert "statements.0" in turns[2]["content"]
    assert meter.steps["test"].calls == 2
    assert meter.steps["test"].asked_again == 1
    assert meter.of("chunk 1")["test"].prompt_tokens == 20


@pytest.mark.parametrize("asks_again", [0, 1, 3])
def test_asking_again_has_an_end(asks_again: int) -> None:
    with serving(lambda call: say('{"talk": true}')) as server:
        with connected(server, asks_again=asks_again) as model, measure() as meter:
            (completion,) = model.complete(asking("q"), Statements, step="test")
        assert completion.error is not None
        assert completion.error.kind == "invalid"
        assert completion.text == '{"talk": true}'
        assert len(server.calls) == 1 + asks_again
        assert meter.steps["test"].failures == 1


def test_a_cut_off_answer_keeps_what_was_complete() -> None:
    cut = '{"statements": [{"head": "a", "tail": "b"}, {"head": "c", "tail": "hal'
    with serving(lambda call: say(cut, "length")) as server, connected(server) as model:
        (completion,) = model.complete(asking("q"), Statements, step="test")
    assert completion.parsed(Statements) == Statements(statements=[Statement(head="a", tail="b")])
    assert completion.truncated
    assert completion.dropped == 1


def test_a_reasoning_block_is_no_part_of_the_answer() -> None:
    with serving(lambda call: say(f"<think>{{maybe}}</think>\n{GOOD}")) as server, connected(server) as model:
        (completion,) = model.complete(asking("q"), Statements, step="test")
    assert completion.value is not None
    assert completion.asked_again == 0


def test_a_rejected_answer_is_kept_but_not_used_again(tmp_path: Path) -> None:
    with serving(lambda call: say("{}")) as server:
        for _ in range(2):
            with connected(server, tmp_path / "cache.sqlite") as model:
                (completion,) = model.complete(asking("q"), Statements, step="test")
                assert completion.error is not None
        assert len(server.calls) == 4
        server.behave = lambda call: say(GOOD)
        with connected(server, tmp_path / "cache.sqlite") as model:
            (completion,) = model.complete(asking("q"), Statements, step="test")
        assert completion.value is not None


@pytest.mark.parametrize("text", ["{}", "<think>but no answer follows"])
def test_an_answer_of_no_use_is_asked_for_anew_by_the_next_run(tmp_path: Path, text: str) -> None:
    with serving(lambda call: say(text)) as server:
        for calls in (1, 2):
            with connected(server, tmp_path / "cache.sqlite", asks_again=0) as model:
                model.complete(asking("q"), Statements, step="test")
            assert len(server.calls) == calls


def test_what_was_answered_before_the_budget_ended_is_not_paid_again(tmp_path: Path) -> None:
    with serving(lambda call: say("{}") if call.number == 0 else say(GOOD)) as server:
        with connected(server, tmp_path / "cache.sqlite", max_calls=1) as model:
            (completion,) = model.complete(asking("q"), Statements, step="test")
            assert completion.error is not None
            assert completion.error.kind == "budget"
        with connected(server, tmp_path / "cache.sqlite", max_calls=1) as model:
            (completion,) = model.complete(asking("q"), Statements, step="test")
        assert completion.value is not None
        assert len(server.calls) == 2
