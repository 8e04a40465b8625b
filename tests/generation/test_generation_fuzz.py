"""Whatever a model says, judges, answers and the steps in plain text give a sound outcome."""

import json
import math

from hypothesis import given, settings
from hypothesis import strategies as st

from qgrag.extraction.records import Triple
from qgrag.generation.answers import AnswerWriter
from qgrag.generation.correctness import CorrectnessJudge
from qgrag.generation.pairwise import CRITERIA, PairwiseJudge
from qgrag.generation.subgraph_scores import SubgraphJudge
from qgrag.names.forms import without_punctuation
from qgrag.retrieval.results import Hit, RetrievalResult
from qgrag.retrieval.steps.llm_entity_questions import LLMEntityQuestions
from qgrag.retrieval.steps.llm_entity_summaries import LLMEntitySummaries
from tests.extraction.test_llm_fuzz import Parrot

odd = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=12),
    st.lists(st.text(max_size=4), max_size=3),
)
marks = st.sampled_from(["1", "2", "tie", "Answer 1", "both", "3", 0, 10, 11, -1, "7", True, "yes"]) | odd
fields = ["reason", "correct", *CRITERIA, "richness", "relevance", "connectivity", "questions", "x"]
answers = st.one_of(
    st.text(max_size=80),
    st.dictionaries(st.sampled_from(fields), marks, max_size=8).map(json.dumps),
    st.fixed_dictionaries(dict.fromkeys(fields, marks)).map(json.dumps),
    st.lists(
        st.sampled_from(["[1]", "[2]", "[1, 9]", "【1】", "Basel", "答案：", "Answer:", " ", "\n", "<think>"])
    ).map("".join),
)
TRIPLES = [Triple("Mira Tolland", "lives in", "Port Esk")]
RESULT = RetrievalResult("Where?", "naive", (Hit("a-0", "a", ("a",), 0, 5, 1.0, "Basel"),))


@settings(deadline=None, max_examples=200)
@given(answers)
def test_judgements_are_complete_or_absent(text: str) -> None:
    model = Parrot(text)
    (verdict,) = CorrectnessJudge(model)(["q"], [["a"]], ["b"])
    assert verdict.correct in (True, False, None)
    assert verdict.correct is not None or verdict.reason
    (comparison,) = PairwiseJudge(model)(["q"], ["a"], ["b"])
    assert set(comparison.scores) == (set(CRITERIA) if comparison.judged else set())
    assert all(share in (0.0, 0.25, 0.5, 0.75, 1.0) for share in comparison.scores.values())
    (score,) = SubgraphJudge(model)(["q"], [TRIPLES])
    if score is not None:
        assert all(0 <= mark <= 1 for mark in (score.richness, score.relevance, score.connectivity))
        assert math.isfinite(score.total)


@settings(deadline=None, max_examples=200)
@given(answers)
def test_answers_cite_what_was_shown_or_say_why_there_is_none(text: str) -> None:
    (answer,) = AnswerWriter(Parrot(text))([RESULT])
    assert {citation.chunk_id for citation in answer.citations} <= {"a-0"}
    assert not (answer.error and (answer.answered or answer.text))


@settings(deadline=None, max_examples=200)
@given(answers)
def test_questions_are_distinct_and_summaries_text(text: str) -> None:
    (questions,) = LLMEntityQuestions(Parrot(text), count=3)(["q"], ["Mira"])
    assert len(questions) <= 3
    assert len({without_punctuation(question[:200]) for question in questions}) == len(questions)
    (summary,) = LLMEntitySummaries(Parrot(text))(["q"], ["Mira"], [["a note"]], [[]])
    assert isinstance(summary, str)
