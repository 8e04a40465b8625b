import logging
import threading
from pathlib import Path

import pytest
from pydantic import BaseModel

from qgrag.config import from_plain
from qgrag.errors import ConfigError
from qgrag.llm.backend import Budget
from qgrag.llm.cached_model import load_language_model
from qgrag.llm.config import LLMConfig, Pace, Sampling
from qgrag.llm.prompts import PromptConfig
from qgrag.llm.usage import Meter, Usage, measure
from tests.llm.server import Answer, Call, asking, connected, fail, say, serving


class Verdict(BaseModel):
    correct: bool


def test_calls_beyond_the_budget_are_not_sent() -> None:
    with serving(lambda call: say("x")) as server, connected(server, max_calls=5) as model:
        completions = model.complete(asking(*map(str, range(12))), step="test")
        assert len(server.calls) == 5
        errors = [c.error.kind for c in completions if c.error]
        assert errors == ["budget"] * 7
        assert model.budget.exhausted


def test_tokens_beyond_the_budget_are_not_spent() -> None:
    with serving(lambda call: say("x")) as server:
        with connected(server, max_tokens_total=40, pace=Pace(concurrency=1)) as model:
            completions = model.complete(asking(*map(str, range(12))), step="test")
        assert len(server.calls) == 3
    assert sum(c.error is None for c in completions) == 3


def test_a_run_that_stopped_at_its_budget_goes_on_with_the_next(tmp_path: Path) -> None:
    questions = asking(*map(str, range(10)))
    with serving(lambda call: say("x")) as server:
        for calls in (4, 8, 10):
            with connected(server, tmp_path / "cache.sqlite", max_calls=4) as model:
                model.complete(questions, step="test")
            assert len(server.calls) == calls


def test_the_budget_counts_under_concurrency() -> None:
    budget = Budget(max_calls=500)
    admitted: list[bool] = []
    threads = [threading.Thread(target=lambda: admitted.extend(budget.admit() for _ in range(200))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(admitted) == 500


def test_an_estimate_sends_nothing_and_knows_the_cache(tmp_path: Path) -> None:
    with serving(lambda call: say("x")) as server, connected(server, tmp_path / "cache.sqlite") as model:
        model.complete(asking("a"), step="test")
        estimate = model.estimate(asking("a", "b" * 400, "b" * 400), step="test", answer_tokens=30)
        assert len(server.calls) == 1
    assert (estimate.calls, estimate.cache_hits) == (1, 1)
    assert estimate.prompt_tokens == 104
    assert estimate.completion_tokens == 30
    assert (estimate + estimate).calls == 2


def test_meters_see_their_own_block_only() -> None:
    with serving(lambda call: say("x")) as server, connected(server) as model, measure() as outer:
        model.complete(asking("a"), step="one", owners=["chunk 1"])
        with measure() as inner:
            model.complete(asking("b", "c"), step="two", owners=["chunk 1", "chunk 2"])
    assert set(outer.steps) == {"one", "two"}
    assert set(inner.steps) == {"two"}
    assert inner.total.calls == 2
    assert inner.total.tokens == 30
    assert set(outer.of("chunk 1")) == {"one", "two"}
    assert outer.of("chunk 1")["two"].calls == 1
    assert outer.of("elsewhere") == {}
    assert outer.to_dict("chunk 2")["two"]["prompt_tokens"] == 10
    merged = Meter()
    merged.merge(outer)
    merged.merge(inner)
    assert merged.steps["two"].calls == 4
    assert Usage(**merged.to_dict()["two"]) == merged.steps["two"]


def test_failures_are_reported_with_their_owner(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, "qgrag.llm")
    with serving(lambda call: fail(400)) as server, connected(server) as model, measure() as meter:
        model.complete(asking("a"), Verdict, step="judging", owners=["chunk 7"])
    assert any("judging: chunk 7: request: HTTP 400" in record.message for record in caplog.records)
    assert meter.of("chunk 7")["judging"].failures == 1


def test_owners_have_to_match() -> None:
    with serving(lambda call: say("x")) as server, connected(server) as model:
        with pytest.raises(ValueError, match="2 conversations but 1 owners"):
            model.complete(asking("a", "b"), step="test", owners=["one"])
        assert model.complete([], step="test") == []


def test_the_fingerprint_follows_model_and_sampling() -> None:
    configs = [
        LLMConfig(model="a", base_url="http://x/v1"),
        LLMConfig(model="b", base_url="http://x/v1"),
        LLMConfig(model="a", base_url="http://x/v1", sampling=Sampling(temperature=0.5)),
    ]
    models = [load_language_model(config, None) for config in configs]
    assert len({model.fingerprint for model in models}) == 3
    again = load_language_model(LLMConfig(model="a", base_url="http://y/v1"), None)
    assert again.fingerprint == models[0].fingerprint
    for model in (*models, again):
        model.close()


SECRET = "sk-quite-secret-indeed"


def test_the_key_is_sent_and_shows_nowhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("QGRAG_LLM_API_KEY", SECRET)

    def behave(call: Call) -> Answer:
        return say("x") if call.number == 0 else fail(400, f"key {SECRET} is tired")

    with caplog.at_level(logging.DEBUG), serving(behave) as server:
        with connected(server, tmp_path / "cache.sqlite", pace=Pace(concurrency=1)) as model:
            completions = model.complete(asking("a", "b"), step="test")
            shown = f"{model!r} {vars(model)} {model.config!r} {completions}"
        assert server.calls[0].headers["authorization"] == f"Bearer {SECRET}"
    assert SECRET not in shown
    assert SECRET not in caplog.text
    assert all(SECRET.encode() not in file.read_bytes() for file in tmp_path.iterdir())


def test_openais_key_is_not_sent_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    with serving(lambda call: say("x")) as server:
        with connected(server) as model:
            model.complete(asking("a"), step="test")
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        with connected(server) as model:
            model.complete(asking("a"), step="test")
        assert [SECRET in call.headers["authorization"] for call in server.calls] == [False, True]


def test_openai_needs_a_key() -> None:
    with pytest.raises(ConfigError, match="OPENAI_API_KEY"):
        load_language_model(LLMConfig(model="gpt"), None)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"model": ""}, "llm.model"),
        ({"model": "m", "base_url": "localhost:8000/v1"}, "http"),
        ({"model": "m", "base_url": "http://me:secret@host/v1"}, "QGRAG_LLM_API_KEY"),
        ({"model": "m", "base_url": "http://host/v1?key=secret"}, "QGRAG_LLM_API_KEY"),
        ({"model": "m", "asks_again": -1}, "asks_again"),
        ({"model": "m", "max_calls": -1}, "max_calls"),
    ],
)
def test_configurations_that_cannot_work(settings: dict[str, object], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        load_language_model(LLMConfig(**settings), None)  # type: ignore[arg-type]


def test_configurations_come_from_plain_values() -> None:
    values = {
        "model": "m",
        "base_url": "http://127.0.0.1:1/v1",
        "sampling": {"temperature": 0.5, "stop": ["END"], "extra": {"top_k": 3}},
        "pace": {"requests_per_minute": 60},
    }
    config = from_plain(LLMConfig, values, where="here")
    assert config.sampling == Sampling(0.5, stop=("END",), extra={"top_k": 3})
    assert config.pace == Pace(requests_per_minute=60)
    with pytest.raises(ConfigError, match="concurency"):
        from_plain(LLMConfig, {"pace": {"concurency": 3}}, where="here")
    assert from_plain(PromptConfig, {"files": {"pairs": "x"}}, where="here") == PromptConfig(files={"pairs": "x"})


@pytest.mark.parametrize("values", [{"temperature": -1}, {"top_p": 0}, {"top_p": 1.1}, {"max_tokens": 0}])
def test_samplings_that_cannot_work(values: dict[str, float]) -> None:
    with pytest.raises(ConfigError, match=next(iter(values))):
        Sampling(**values)  # type: ignore[arg-type]


@pytest.mark.parametrize("values", [{"concurrency": 0}, {"max_retries": -1}, {"requests_per_minute": 0}])
def test_paces_that_cannot_work(values: dict[str, int]) -> None:
    with pytest.raises(ConfigError, match=next(iter(values))):
        Pace(**values)  # type: ignore[arg-type]
