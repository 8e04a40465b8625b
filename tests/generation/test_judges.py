import json

import pytest

from qgrag.errors import ConfigError
from qgrag.extraction.records import Triple
from qgrag.generation.correctness import CorrectnessJudge, Verdict
from qgrag.generation.pairwise import CRITERIA, PairwiseJudge
from qgrag.generation.subgraph_scores import SubgraphJudge, SubgraphScore
from tests.llm.server import Answer, Call, connected, say, serving

REFUSAL = say(None, refusal="no")


def says(**fields: object) -> Answer:
    return say(json.dumps(fields))


def test_correctness() -> None:
    def behave(call: Call) -> Answer:
        if "unlucky" in call.prompt:
            return REFUSAL
        return says(reason="same", correct="Answer: Paris" in call.prompt)

    with serving(behave) as server, connected(server) as model:
        verdicts = CorrectnessJudge(model)(
            ["a", "b", "c", "d"], [["Paris", "City of Light"]] * 4, ["Paris", "Lyon", " ", "unlucky"]
        )
        assert len(server.calls) == 3
        assert any("Reference: Paris / City of Light" in p for p in server.prompts)
    assert verdicts[:3] == [Verdict(True, "same"), Verdict(False, "same"), Verdict(False, "no answer")]
    assert verdicts[3].correct is None
    assert "refused" in verdicts[3].reason


def prefers(text: str) -> "dict[str, str]":
    return dict.fromkeys(CRITERIA, text)


@pytest.mark.parametrize(
    ("given", "swapped", "score"),
    [("1", "2", 1.0), ("2", "1", 0.0), ("1", "1", 0.5), ("Answer 2", "answer2", 0.5), ("tie", "2", 0.75)],
)
def test_both_orders_count_the_same(given: str, swapped: str, score: float) -> None:
    def behave(call: Call) -> Answer:
        in_order = call.prompt.index("good text") < call.prompt.index("other text")
        return says(reason="r", **prefers(given if in_order else swapped))

    with serving(behave) as server, connected(server) as model:
        (comparison,) = PairwiseJudge(model)(["q"], ["good text"], ["other text"])
        assert len(server.calls) == 2
    assert comparison.scores == dict.fromkeys(CRITERIA, score)
    assert comparison.judged == 2


def test_two_equal_answers_are_a_tie_whatever_the_judge_likes() -> None:
    with serving(lambda call: says(reason="r", **prefers("1"))) as server, connected(server) as model:
        (comparison,) = PairwiseJudge(model)(["q"], ["the same"], ["the same"])
    assert comparison.scores == dict.fromkeys(CRITERIA, 0.5)


def test_an_order_that_was_not_judged_is_left_out() -> None:
    def behave(call: Call) -> Answer:
        if "lost" in call.prompt:
            return REFUSAL
        in_order = call.prompt.index("good text") < call.prompt.index("other text")
        return says(reason="r", **prefers("1")) if in_order else REFUSAL

    with serving(behave) as server, connected(server) as model:
        one, none = PairwiseJudge(model)(["q", "q"], ["good text", "lost good text"], ["other text"] * 2)
    assert one.scores["overall"] == 1.0
    assert one.judged == 1
    assert "refused" in one.reasons[1]
    assert none.scores == {}


def test_marks_for_subgraphs() -> None:
    def behave(call: Call) -> Answer:
        return says(richness=5, relevance="10", connectivity=0 if "fine" in call.prompt else 11)

    triple = Triple("a", "b", "c")
    with serving(behave) as server, connected(server) as model:
        scores = SubgraphJudge(model)(["fine", "odd", "fine"], [[triple], [triple], []])
        assert any(p == "Question: fine\n<data>\nStatements:\na | b | c\n</data>" for p in server.prompts)
    assert scores == [SubgraphScore(0.5, 1.0, 0.0), None, SubgraphScore(0.0, 0.0, 0.0)]
    assert scores[0] is not None
    assert scores[0].total == pytest.approx(0.5)
    with pytest.raises(ConfigError, match="max_triple_tokens"):
        SubgraphJudge(model, max_triple_tokens=0)
