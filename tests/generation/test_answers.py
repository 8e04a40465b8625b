import json

import pytest

from qgrag.errors import ConfigError
from qgrag.generation.answers import AnswerConfig, AnswerWriter
from qgrag.generation.context import build_context
from qgrag.llm.prompts import PromptConfig, Prompts
from qgrag.llm.tokens import estimate_tokens
from qgrag.retrieval.evidence.base import Evidence, View
from qgrag.retrieval.results import Hit, RetrievalResult
from tests.llm.server import Answer, Call, connected, fail, say, serving


def hit(i: int, text: str, title: str = "") -> Hit:
    return Hit(f"d{i}-0", f"d{i}", (f"d{i}", f"copy{i}"), 10, 10 + len(text), 1.0 - i / 100, text, title)


def result(query: str, *texts: str, views: tuple[View, ...] | None = None) -> RetrievalResult:
    hits = tuple(hit(i, text, f"Title {i}") for i, text in enumerate(texts))
    return RetrievalResult(query, "naive", hits, Evidence(context=views), {"query_entities": {"calls": 1}})


def test_an_answer_cites_only_what_was_shown() -> None:
    def behave(call: Call) -> Answer:
        return say("Answer: 上海 [2][9]" if "王伟" in call.prompt else "Port Esk [1].")

    results = [result("王伟住在哪里？", "李华住在北京。", "王伟住在上海。"), result("Where?", "In Port Esk.")]
    with serving(behave) as server, connected(server) as model:
        chinese, english = AnswerWriter(model)(results)
        (prompt,) = [p for p in server.prompts if "王伟" in p]
    assert (
        prompt
        == "<data>\n[1] Title 0\n李华住在北京。\n\n[2] Title 1\n王伟住在上海。\n</data>\n\nQuestion: 王伟住在哪里？"
    )
    assert chinese.text == "上海"
    (citation,) = chinese.citations
    assert (citation.number, citation.chunk_id, citation.document_ids) == (2, "d1-0", ("d1", "copy1"))
    assert (citation.start, citation.end) == (10, 17)
    assert chinese.invented_citations == 1
    assert chinese.answered
    assert english.text == "Port Esk."
    assert set(english.usage) == {"query_entities", "answer"}
    assert english.usage["answer"]["calls"] == 1
    assert json.loads(json.dumps(chinese.to_dict()))["citations"][0]["chunk_id"] == "d1-0"


def test_a_long_answer_keeps_its_markers() -> None:
    with serving(lambda call: say("It is so [1]. And so [5].")) as server, connected(server) as model:
        (answer,) = AnswerWriter(model, AnswerConfig("long"))([result("How?", "So.")])
    assert answer.text == "It is so [1]. And so."


@pytest.mark.parametrize(
    "text", ["Insufficient information.", "insufficient information", "**Insufficient information**"]
)
def test_no_answer_in_the_evidence(text: str) -> None:
    with serving(lambda call: say(text)) as server, connected(server) as model:
        (answer,) = AnswerWriter(model)([result("Where?", "x")])
    assert not answer.answered
    assert not answer.error


def test_the_words_for_no_answer_can_be_set() -> None:
    with serving(lambda call: say("信息不足。")) as server, connected(server) as model:
        writer = AnswerWriter(model, AnswerConfig(unknown="信息不足。"), Prompts(PromptConfig("Chinese")))
        (answer,) = writer([result("哪里？", "x")])
        assert "信息不足。" in server.calls[0].body["messages"][0]["content"]
        assert "Write in Chinese" in server.calls[0].body["messages"][0]["content"]
    assert not answer.answered


def test_failures_and_empty_results_are_told_apart() -> None:
    with serving(lambda call: fail(400, "no")) as server, connected(server) as model:
        nothing, failed = AnswerWriter(model)([result("a"), result("b", "x")])
        assert len(server.calls) == 1
    assert nothing.error == "nothing was retrieved"
    assert failed.error.startswith("request: HTTP 400")
    assert [(a.answered, a.text) for a in (nothing, failed)] == [(False, "")] * 2


def test_without_evidence() -> None:
    with serving(lambda call: say("Paris [1]")) as server, connected(server) as model:
        (answer,) = AnswerWriter(model).without_evidence(["Where?"])
        assert server.prompts == ["Question: Where?"]
    assert answer.text == "Paris"
    assert answer.citations == ()


def test_views_of_the_graph_stand_before_the_passages() -> None:
    views = (View("Statements", ("a | b | c", "d | e | f"), "head | relation | tail"), View("Paths", ()))
    context = build_context(result("q", "text", views=views), 5, 1000)
    assert context.text == "Statements (head | relation | tail):\na | b | c\nd | e | f\n\n[1] Title 0\ntext"


@pytest.mark.parametrize("max_tokens", [1, 60, 150, 1000])
def test_the_context_keeps_within_its_limits(max_tokens: int) -> None:
    views = (View("Statements", tuple(f"node {i} | leads to | node {i + 1}" for i in range(500))),)
    context = build_context(result("q", *(["word " * 30] * 20), views=views), 7, max_tokens)
    assert 1 <= len(context.passages) <= 7
    first = estimate_tokens("[1] Title 0\n" + "word " * 30) + estimate_tokens(views[0].lines[0]) + 8
    assert estimate_tokens(context.text) <= max(first, max_tokens + 10)


def test_estimates_and_limits() -> None:
    with serving(lambda call: say("x")) as server, connected(server) as model:
        estimate = AnswerWriter(model).estimate([result("a", "x"), result("b")])
        assert not server.calls
    assert estimate.calls == 1
    for config in ({"max_passages": 0}, {"max_tokens": 0}, {"unknown": " "}):
        with pytest.raises(ConfigError, match="answer"):
            AnswerConfig(**config)  # type: ignore[arg-type]
