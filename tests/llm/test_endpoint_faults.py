import json
import logging
import threading

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

from qgrag.llm.config import Pace, Sampling
from qgrag.llm.errors import LLMUnavailableError
from qgrag.llm.records import Completion, Message
from qgrag.llm.usage import measure
from tests.llm.server import Answer, Behaviour, Call, asking, connected, fail, say, serving


def ask(behave: Behaviour, *texts: str, pace: Pace | None = None) -> tuple[list[Completion], list[Call]]:
    with serving(behave) as server, connected(server, pace=pace) as model:
        completions = model.complete(asking(*texts), step="test", owners=[f"chunk {t}" for t in texts])
        return completions, server.calls


def first_then(first: Answer, then: Answer) -> Behaviour:
    return lambda call: first if call.number == 0 else then


def test_answers_come_in_the_order_of_the_questions() -> None:
    texts = [f"q{i}" for i in range(20)]
    completions, _ = ask(lambda call: say(f"answer to {call.prompt}"), *texts)
    assert [c.text for c in completions] == [f"answer to {t}" for t in texts]


def test_no_more_calls_are_open_than_configured() -> None:
    gate = threading.Event()

    def behave(call: Call) -> Answer:
        if server.open == 3:
            threading.Timer(0.2, gate.set).start()
        return Answer(body=say("x").body, wait=gate)

    with serving(behave) as server, connected(server, pace=Pace(concurrency=3)) as model:
        model.complete(asking(*map(str, range(12))), step="test")
        assert server.most_open == 3


def test_parameters_arrive() -> None:
    with serving(lambda call: say("x")) as server:
        sampling = Sampling(0.5, 0.9, 7, 33, ("END",), {"top_k": 20})
        with connected(server, sampling=sampling) as model:
            model.complete(asking("hello"), step="test")
        body = server.calls[0].body
    assert body["messages"] == [{"role": "user", "content": "hello"}]
    expected = {"temperature": 0.5, "top_p": 0.9, "seed": 7, "max_tokens": 33, "stop": ["END"], "top_k": 20}
    assert {name: body[name] for name in expected} == expected


@pytest.mark.parametrize(
    "passing",
    [
        fail(429, "slow down"),
        fail(429, "slow down", retry_after="0.05"),
        fail(429, "slow down", retry_after="Wed, 21 Oct 2015 07:28:00 GMT"),
        fail(429, "slow down", retry_after="500", retry_after_ms="30"),
        fail(500),
        fail(503, "overloaded", retry_after="0"),
        Answer(drop=True),
        Answer(body={"id": "1", "object": "chat.completion", "created": 0, "model": "m", "choices": []}),
        Answer(body={"error": {"message": "upstream failed", "code": 502}}),
        Answer(body=b"<html>bad gateway</html>"),
        say(""),
        say(None),
    ],
    ids=lambda answer: f"{answer.status}-{str(answer.body)[:40]}",
)
def test_what_may_pass_is_tried_again(passing: Answer) -> None:
    with serving(first_then(passing, say("at last"))) as server, connected(server) as model, measure() as meter:
        (completion,) = model.complete(asking("q"), step="test", owners=["chunk q"])
        assert completion.error is None
        assert completion.text == "at last"
        assert len(server.calls) == 2
        assert meter.steps["test"].retries == 1
        assert meter.steps["test"].calls == 1


@pytest.mark.parametrize(
    ("answer", "kind", "attempts"),
    [
        (fail(429), "rate_limit", 2),
        (fail(500), "server", 2),
        (fail(400, "bad parameter"), "request", 1),
        (fail(400, "maximum context length is 8192 tokens", "context_length_exceeded"), "context_overflow", 1),
        (fail(500, "Requested tokens (9000) exceed context window of 8192"), "context_overflow", 1),
        (say(None, refusal="I cannot help"), "refusal", 1),
        (say("", "content_filter"), "refusal", 1),
        (say("", "length"), "empty", 1),
        (say("", "length", reasoning_content="hm " * 50), "empty", 1),
        (say("<think>" + "hm " * 50, "length"), "empty", 1),
        (say("fine. " + "again and " * 30, "length"), "repetition", 1),
        (say("fine. " + "again and " * 30, "", tokens=100), "repetition", 1),
        (Answer(body={"choices": []}), "empty", 2),
        (Answer(body=b"not json"), "server", 2),
    ],
)
def test_what_does_not_pass_is_an_error_of_its_item(answer: Answer, kind: str, attempts: int) -> None:
    def behave(call: Call) -> Answer:
        return answer if call.prompt == "bad" else say("fine")

    completions, calls = ask(behave, "good", "bad", "better")
    assert [c.text for c in completions[::2]] == ["fine", "fine"]
    error = completions[1].error
    assert error is not None
    assert error.kind == kind
    assert sum(call.prompt == "bad" for call in calls) == attempts


def test_a_timeout_is_an_error_of_its_item() -> None:
    never = threading.Event()
    pace = Pace(concurrency=4, max_retries=0, read_timeout=9, total_timeout=2)
    completions, _ = ask(
        lambda call: Answer(body=say("late").body, wait=never) if call.prompt == "slow" else say("fine"),
        "slow",
        "quick",
        pace=pace,
    )
    never.set()
    assert completions[0].error is not None
    assert completions[0].error.kind == "timeout"
    assert completions[1].text == "fine"


def test_silence_is_explained(caplog: pytest.LogCaptureFixture) -> None:
    explained = threading.Event()
    caplog.handler.addFilter(lambda record: explained.set() or True)
    with caplog.at_level(logging.WARNING, "qgrag.llm.endpoint.session"):
        ask(lambda call: Answer(body=say("x").body, wait=explained), "q", pace=Pace(quiet_seconds=0.1))
    assert any("1 calls are open, the oldest: chunk q" in record.message for record in caplog.records)
    assert any("(awaits its answer)" in record.message for record in caplog.records)


@pytest.mark.parametrize(
    ("pace", "words"),
    [
        (Pace(quiet_seconds=0.1, max_retries=1), "awaits attempt 2, 1 s after: HTTP 429: slow down"),
        (Pace(quiet_seconds=0.1, concurrency=2, requests_per_minute=60), "awaits its turn under pace"),
    ],
)
def test_a_silence_of_our_own_making_is_explained(pace: Pace, words: str, caplog: pytest.LogCaptureFixture) -> None:
    def behave(call: Call) -> Answer:
        return fail(429, "slow down", retry_after="1") if "429" in words and call.number == 0 else say("x")

    texts = ("q",) if pace.requests_per_minute is None else ("q", "r")
    with caplog.at_level(logging.WARNING, "qgrag.llm.endpoint.session"):
        completions, _ = ask(behave, *texts, pace=pace)
    assert all(c.text == "x" for c in completions)
    assert any(words in record.message for record in caplog.records)


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (fail(401, "no such key"), "QGRAG_LLM_API_KEY"),
        (fail(404, "model not found"), "llm.model"),
        (fail(429, "You exceeded your current quota", "insufficient_quota"), "quota"),
    ],
)
def test_what_no_request_can_mend_ends_the_run(answer: Answer, words: str) -> None:
    with pytest.raises(LLMUnavailableError, match=words):
        ask(lambda call: answer, *map(str, range(20)))


def test_nobody_there() -> None:
    with serving(lambda call: say("x")) as server:
        url = server.url
    with connected(server) as model, pytest.raises(LLMUnavailableError, match=url):
        model.complete(asking("q"), step="test")


def test_an_endpoint_that_stopped_working_ends_the_run() -> None:
    def behave(call: Call) -> Answer:
        return say("x") if call.number < 5 else fail(503)

    with serving(behave) as server, connected(server, pace=Pace(concurrency=2, max_retries=0)) as model:
        with pytest.raises(LLMUnavailableError, match="503"):
            model.complete(asking(*map(str, range(1000))), step="test")
        assert len(server.calls) < 30


def test_the_newer_name_of_the_token_limit_is_found_out() -> None:
    def behave(call: Call) -> Answer:
        if "max_tokens" in call.body:
            return fail(400, "Unsupported parameter: use 'max_completion_tokens' instead")
        return say("x")

    completions, calls = ask(behave, "a", "b", pace=Pace(concurrency=1))
    assert [c.text for c in completions] == ["x", "x"]
    assert [call.body.get("max_completion_tokens") for call in calls] == [None, 100, 100]


def test_a_form_that_several_calls_find_out_at_once_costs_none_of_them() -> None:
    all_there = threading.Barrier(4)

    def behave(call: Call) -> Answer:
        if "max_tokens" not in call.body:
            return say("x")
        all_there.wait(30)
        return fail(400, "Unsupported parameter: use 'max_completion_tokens' instead")

    completions, calls = ask(behave, *"abcd", pace=Pace(concurrency=4, max_retries=0))
    assert [c.text for c in completions] == ["x"] * 4
    assert len(calls) == 8


def test_sampling_that_a_model_does_not_take_is_left_out(caplog: pytest.LogCaptureFixture) -> None:
    def behave(call: Call) -> Answer:
        for name in ("temperature", "top_p"):
            if name in call.body:
                return fail_about(name)
        return say("x")

    with caplog.at_level(logging.WARNING, "qgrag.llm"):
        completions, calls = ask(behave, "a", "b", pace=Pace(concurrency=1))
    assert [c.text for c in completions] == ["x", "x"]
    assert len(calls) == 4
    assert calls[-1].body["seed"] == 0
    assert sum("refuses the field temperature" in record.message for record in caplog.records) == 1


def fail_about(name: str) -> Answer:
    return Answer(400, {"error": {"message": f"no {name} here", "code": "unsupported_value", "param": name}})


def test_a_model_without_a_system_turn_gets_it_in_the_users() -> None:
    def behave(call: Call) -> Answer:
        roles = [message["role"] for message in call.body["messages"]]
        return fail(500, "jinja: System role not supported") if "system" in roles else say("x")

    conversation: list[Message] = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hello"}]
    with serving(behave) as server, connected(server, pace=Pace(max_retries=0)) as model:
        completions = model.complete([conversation], step="test")
        assert completions[0].text == "x"
        assert server.prompts[-1] == "Be brief.\n\nHello"


def test_an_answer_in_parts_is_one_text() -> None:
    answer = Answer(
        body={"choices": [{"message": {"content": [{"type": "text", "text": "Pa"}, {"type": "text", "text": "ris"}]}}]}
    )
    completions, _ = ask(lambda call: answer, "q")
    assert completions[0].text == "Paris"


def part(kind: str, **fields: str) -> dict[str, str]:
    return {"type": kind, **fields}


def called(*arguments: object, content: object = None) -> Answer:
    calls = [{"id": "1", "type": "function", "function": {"name": "answer", "arguments": a}} for a in arguments]
    return Answer(body={"choices": [{"message": {"content": content, "tool_calls": calls}, "finish_reason": "stop"}]})


def in_parts(*parts: dict[str, str]) -> Answer:
    return Answer(body={"choices": [{"message": {"content": list(parts)}, "finish_reason": "stop"}]})


def test_parts_of_reasoning_are_no_part_of_the_answer() -> None:
    reasoning = [part("reasoning", text="Berlin?"), part("thinking", thinking="Rome?"), part("reasoning", text="hm")]
    completions, _ = ask(lambda call: in_parts(*reasoning, part("text", text="Paris")), "q")
    assert completions[0].text == "Paris"
    completions, _ = ask(lambda call: in_parts(*reasoning), "q", pace=Pace(max_retries=0))
    assert completions[0].error is not None
    assert "only parts of type reasoning, thinking" in completions[0].error.message


class Names(BaseModel):
    names: list[str]


@pytest.mark.parametrize(
    "answer",
    [
        called('{"names": ["a", "b"]}'),
        called({"names": ["a", "b"]}, content=""),
        called('"a"', '"b"'),
        called('{"names": ["c"]}', content='{"names": ["a", "b"]}'),
    ],
)
def test_an_answer_that_came_as_a_call_of_a_tool_is_read(answer: Answer) -> None:
    with serving(lambda call: answer) as server, connected(server, pace=Pace(max_retries=0)) as model:
        (completion,) = model.complete(asking("q"), Names, step="test")
    assert completion.value == Names(names=["a", "b"])


def test_a_call_of_a_tool_in_place_of_text_says_so() -> None:
    completions, _ = ask(lambda call: called("{}"), "q", pace=Pace(max_retries=0))
    assert completions[0].error is not None
    assert "only calls the tool 'answer'" in completions[0].error.message


def test_lone_surrogates_are_neither_sent_nor_kept() -> None:
    completions, calls = ask(lambda call: say("a\ud800b"), "x\udc00y")
    assert calls[0].prompt == "x?y"
    assert completions[0].text == "a?b"


odd = st.none() | st.booleans() | st.integers() | st.text(max_size=6) | st.just([]) | st.just({})
messages = odd | st.fixed_dictionaries(
    {}, optional={"content": odd | st.just([{"type": "text", "text": "a"}, 3]), "refusal": odd, "reasoning": odd}
)
choices = odd | st.lists(
    odd | st.fixed_dictionaries({"message": messages}, optional={"finish_reason": odd}), max_size=2
)
usages = odd | st.fixed_dictionaries({}, optional={"prompt_tokens": odd, "completion_tokens": odd})
json_bodies = odd | st.fixed_dictionaries({}, optional={"choices": choices, "usage": usages, "error": odd})


def test_whatever_an_endpoint_answers_is_a_text_or_an_error() -> None:
    with serving(lambda call: say("x")) as server, connected(server, pace=Pace(max_retries=0)) as model:

        @settings(deadline=None, max_examples=120)
        @given(
            json_bodies.map(lambda b: json.dumps(b).encode()) | st.binary(max_size=40),
            st.sampled_from([200, 200, 400, 503]),
        )
        def check(body: bytes, status: int) -> None:
            server.behave = lambda call: Answer(status, body) if call.prompt == "odd" else say("fine")
            odd, fine = model.complete(asking("odd", "even"), step="test")
            assert fine.text == "fine"
            assert (odd.error is None) == bool(odd.text)

        check()
