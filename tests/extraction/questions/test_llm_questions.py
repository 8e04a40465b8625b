import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qgrag.corpus.records import Chunk
from qgrag.errors import ConfigError
from qgrag.extraction.questions.llm_questions import TOKENS_PER_PAIR, LLMQuestionGenerator
from qgrag.extraction.records import QuestionAnswer
from qgrag.llm.cached_model import load_language_model
from qgrag.llm.config import LLMConfig, Pace, Sampling
from qgrag.llm.errors import LLMUnavailableError
from qgrag.llm.prompts import PromptConfig, Prompts
from tests.llm.server import Answer, Call, connected, fail, say, serving

CHUNK = Chunk("a", 0, 0, 0, "Mira Tolland lives in Port Esk. She sells maps since 1702.", "Port Esk")
ROOM = Sampling(max_tokens=10 * TOKENS_PER_PAIR)
CHINESE = Chunk("b", 0, 0, 0, "李华住在北京。王伟住在上海。")


def pairs(*rows: tuple[object, object]) -> Answer:
    return say(json.dumps({"pairs": [{"question": q, "answer": a} for q, a in rows]}, ensure_ascii=False))


def test_pairs_are_clean_distinct_and_placed() -> None:
    def behave(call: Call) -> Answer:
        if "李华" in call.prompt:
            return pairs(("王伟住在哪里？", "上海"))
        return pairs(
            ("1. Where does Mira Tolland live?", "Port Esk"),
            ("where does mira tolland live?", "in Port Esk"),
            ("What does Mira\nTolland sell?", "maps"),
            ("Who opened the first Quillmarsh Lantern Fair?", "Odra Fenwhistle"),
            ("", "nobody"),
            ("How many?", ""),
            ("x" * 600, "y"),
            ("Since when?", 1702),
            ("Who is Mira Tolland?", "a person"),
            ("Is Mira Tolland a painter?", "No."),
            ("Does Mira Tolland sell maps?", "yes"),
            ("Is Port Esk a town?", "yes"),
        )

    with serving(behave) as server, connected(server, sampling=ROOM) as model:
        english, chinese = LLMQuestionGenerator(model, count=4)([CHUNK, CHINESE])
    assert english.value == (
        QuestionAnswer("Where does Mira Tolland live?", "Port Esk", "Mira Tolland lives in Port Esk."),
        QuestionAnswer("What does Mira Tolland sell?", "maps", "She sells maps since 1702."),
        QuestionAnswer("Since when?", "1702", "She sells maps since 1702."),
        QuestionAnswer("Is Mira Tolland a painter?", "No.", "Mira Tolland lives in Port Esk."),
    )
    assert english.counts == {"repeats": 1, "surplus": 2, "ungrounded_answers": 2, "unusable_pairs": 3}
    assert chinese.value == (QuestionAnswer("王伟住在哪里？", "上海", "王伟住在上海。"),)


def test_questions_of_the_prompts_example_are_dropped() -> None:
    chunk = replace(CHUNK, text=f"{CHUNK.text} Its harbour had frozen over.")
    copied = ("Why did Odra Fenwhistle open a lantern fair in Quillmarsh?", "the harbour had frozen over")
    answer = pairs(copied, ("What does she sell?", "maps"))
    with serving(lambda call: answer) as server, connected(server, sampling=ROOM) as model:
        (extracted,) = LLMQuestionGenerator(model, count=2)([chunk])
    assert [pair.answer for pair in extracted.value] == ["maps"]
    assert extracted.counts == {"example_texts": 1}


def test_answers_in_another_language_need_not_stand_in_the_text() -> None:
    german = Prompts(PromptConfig(language="German"))
    with serving(lambda call: pairs(("Was verkauft sie?", "Landkarten"))) as server, connected(server) as model:
        (extracted,) = LLMQuestionGenerator(model, german, count=1)([CHUNK])
        (strict,) = LLMQuestionGenerator(model, count=1)([CHUNK])
    assert [pair.answer for pair in extracted.value] == ["Landkarten"]
    assert (strict.status, strict.counts) == ("failed", {"ungrounded_answers": 1})


def test_a_small_token_limit_splits_the_request() -> None:
    def behave(call: Call) -> Answer:
        return pairs(*((f"question {call.number}-{i}?", "Port Esk") for i in range(4)))

    sampling = Sampling(max_tokens=4 * TOKENS_PER_PAIR)
    with serving(behave) as server, connected(server, sampling=sampling) as model:
        generator = LLMQuestionGenerator(model, count=10)
        assert generator.portions == [4, 4, 2]
        (extracted,) = generator([CHUNK])
        turns = [len(call.body["messages"]) for call in server.calls]
        assert "up to 2 more" in server.calls[-1].prompt
        assert "question 0-0?" in server.calls[-1].body["messages"][4]["content"]
    assert len(extracted.value) == 10
    assert turns == [4, 6, 8]


@pytest.mark.parametrize(
    ("second", "status"), [(say(None, refusal="no"), "ok"), (pairs(("question 0?", "Port Esk")), "ok")]
)
def test_a_later_request_that_brings_nothing_ends_the_chunk(second: Answer, status: str) -> None:
    def behave(call: Call) -> Answer:
        return pairs(("question 0?", "Port Esk")) if call.number == 0 else second

    with serving(behave) as server, connected(server, sampling=Sampling(max_tokens=TOKENS_PER_PAIR)) as model:
        (extracted,) = LLMQuestionGenerator(model, count=9)([CHUNK])
        assert len(server.calls) == 2
    assert extracted.status == status
    assert len(extracted.value) == 1


def test_a_resumed_run_pays_for_no_request_twice(tmp_path: Path) -> None:
    def behave(call: Call) -> Answer:
        return fail(401) if call.number == 5 else pairs((f"question {call.number}?", "Port Esk"))

    cache, one_at_a_time = tmp_path / "c.sqlite", Pace(concurrency=1)
    sampling = Sampling(max_tokens=TOKENS_PER_PAIR)
    chunks = [Chunk("a", i, 0, 0, f"Chunk number {i} is of Port Esk.") for i in range(4)]
    with serving(behave) as server:
        with (
            connected(server, cache, sampling=sampling, pace=one_at_a_time) as model,
            pytest.raises(LLMUnavailableError, match="401"),
        ):
            LLMQuestionGenerator(model, count=2)(chunks)
        assert len(server.calls) == 6
        with connected(server, cache, sampling=sampling) as model:
            done = LLMQuestionGenerator(model, count=2)(chunks)
        assert len(server.calls) == 6 + 8 - 5
    assert all(len(extracted.value) == 2 for extracted in done)


@settings(deadline=None, max_examples=60)
@given(st.integers(1, 100), st.integers(1, 5000))
def test_portions_add_up_within_the_limit(count: int, max_tokens: int) -> None:
    portions = LLMQuestionGenerator(_Unasked(max_tokens), count=count).portions  # type: ignore[arg-type]
    assert sum(portions) == count
    assert all(p * TOKENS_PER_PAIR <= max(max_tokens, TOKENS_PER_PAIR) for p in portions)


class _Unasked:
    fingerprint = "f"

    def __init__(self, max_tokens: int) -> None:
        self.max_tokens = max_tokens


def test_estimates_count_every_request() -> None:
    model = load_language_model(
        LLMConfig(model="m", base_url="http://127.0.0.1:1/v1", sampling=Sampling(max_tokens=4 * TOKENS_PER_PAIR)), None
    )
    estimate = LLMQuestionGenerator(model, count=10).estimate([CHUNK, CHINESE])
    model.close()
    assert estimate.calls == 6
    assert estimate.completion_tokens == 2 * 10 * TOKENS_PER_PAIR
    with pytest.raises(ConfigError, match="count"):
        LLMQuestionGenerator(model, count=0)
