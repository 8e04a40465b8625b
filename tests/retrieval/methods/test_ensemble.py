from types import SimpleNamespace
from typing import Any

import pytest
import torch

from qgrag.errors import ConfigError
from qgrag.retrieval.base import Ranking
from qgrag.retrieval.evidence.base import OtherEvidence, OtherItem
from qgrag.retrieval.evidence.items import VoteItem
from qgrag.retrieval.methods.ensemble import EnsembleConfig, EnsembleRetriever
from qgrag.retrieval.registry import load_retriever
from qgrag.retrieval.steps.llm_entity_questions import LLMEntityQuestions
from qgrag.retrieval.steps.llm_entity_summaries import LLMEntitySummaries
from qgrag.retrieval.steps.llm_implicit_nodes import LLMImplicitNodes
from tests.retrieval.hand_index import hand_index

ROWS = [("", f"Note {i} by Ada.", [("Ada", "wrote", f"Note {i}")]) for i in range(5)]


def member(name: str, chunks: list[list[int]], scores: list[list[float]]) -> Any:
    def rank(queries, vectors, top_k):
        table, values = torch.tensor(chunks), torch.tensor(scores)
        brought = [{c: [OtherItem(name)] for c in row if c >= 0} for row in chunks]
        return Ranking(
            table, values, [OtherEvidence({"from": name}) for _ in queries], brought, [{"calls": 1} for _ in queries]
        )

    return SimpleNamespace(name=name, rank=rank)


ONE = member("one", [[0, 1, 2]], [[9.0, 8.0, 1.0]])
TWO = member("two", [[2, 0, -1]], [[0.5, 0.4, -torch.inf]])


@pytest.fixture(scope="module")
def index():
    return hand_index(ROWS, {})


def run(index, **config):
    settings = EnsembleConfig(members=("one", "two"), **config)
    return EnsembleRetriever(index, settings, members=[ONE, TWO]).retrieve(["q"], top_k=5)[0]


def test_reciprocal_ranks_are_added(index):
    hits = {hit.document_id: hit.score for hit in run(index, k=10).hits}
    assert hits == pytest.approx({"d0": 1 / 11 + 1 / 12, "d1": 1 / 12, "d2": 1 / 13 + 1 / 11})


def test_weights_decide_who_is_heard(index):
    assert [h.document_id for h in run(index, weights=(0.0, 1.0)).hits][:2] == ["d2", "d0"]
    assert [h.document_id for h in run(index, weights=(5.0, 0.1)).hits] == ["d0", "d1", "d2"]


def test_scores_are_standardised_over_what_a_member_found(index):
    hits = {hit.document_id: hit.score for hit in run(index, fusion="score").hits}
    one = torch.tensor([9.0, 8.0, 1.0])
    one = (one - one.min()) / one.std(unbiased=False)
    two = torch.tensor([0.5, 0.4, 0.4])
    two = (two - two.min()) / two.std(unbiased=False)
    assert hits["d0"] == pytest.approx(float(one[0] + two[1]), rel=1e-4)
    assert hits["d1"] == pytest.approx(float(one[1]), rel=1e-4)
    assert hits["d2"] == pytest.approx(float(one[2] + two[0]), rel=1e-4)


def test_each_hit_tells_who_voted_and_why(index):
    result = run(index)
    by_id = {hit.document_id: hit.evidence for hit in result.hits}
    assert [(v.retriever, v.rank) for v in by_id["d2"]] == [("one", 3), ("two", 1)]
    assert by_id["d1"] == (VoteItem("one", 2, (OtherItem("one"),)),)
    assert result.evidence.to_dict() == {"members": {"one": {"from": "one"}, "two": {"from": "two"}}}
    assert result.usage == {"one": {"calls": 1}, "two": {"calls": 1}}


def test_two_settings_of_one_retriever_keep_their_own_evidence_and_usage(index):
    members = [ONE, member("one", [[3, -1, -1]], [[1.0, -torch.inf, -torch.inf]])]
    settings = EnsembleConfig(members=("one.yaml", "other.yaml"))
    result = EnsembleRetriever(index, settings, members=members).retrieve(["q"])[0]
    assert set(result.evidence.members) == set(result.usage) == {"one.yaml", "other.yaml"}
    assert {vote.retriever for hit in result.hits for vote in hit.evidence} == {"one.yaml", "other.yaml"}


@pytest.mark.parametrize(
    ("bad", "what"),
    [
        ({"members": ()}, "two retrievers"),
        ({"members": ("dual",)}, "two retrievers"),
        ({"members": ("dual", "dual")}, "each once"),
        ({"weights": (1.0,)}, "weights"),
        ({"weights": (-1.0, 1.0, 1.0)}, "weights"),
        ({"weights": (0.0, 0.0, 0.0)}, "weights"),
        ({"depth": 0}, "depth"),
    ],
)
def test_settings_out_of_range_are_refused(bad, what):
    with pytest.raises(ConfigError, match=what):
        EnsembleConfig(**bad)


def test_model_given_takes_the_steps_of_every_member(index):
    model: Any = SimpleNamespace()
    retriever = load_retriever(index, "ensemble", members=["dual", "fg"], model=model)
    dual, fg = retriever.members
    assert isinstance(dual._implicit, LLMImplicitNodes)
    assert isinstance(fg._summarise, LLMEntitySummaries)
    assert load_retriever(index, "fg", questions=2, model=model)._questions.count == 2  # type: ignore[attr-defined]


def test_model_takes_the_listed_steps_alone(index, tmp_path):
    path = tmp_path / "fg.yaml"
    path.write_text("retriever: fg\nllm_steps: [summarise]\n")
    model: Any = SimpleNamespace()
    fg: Any = load_retriever(index, str(path), model=model)
    assert isinstance(fg._summarise, LLMEntitySummaries)
    assert not isinstance(fg._questions, LLMEntityQuestions)
    assert not isinstance(load_retriever(index, str(path))._summarise, LLMEntitySummaries)  # type: ignore[attr-defined]
    for asked in (model, None):
        with pytest.raises(ConfigError, match="did you mean 'questions'"):
            load_retriever(index, "fg", model=asked, llm_steps=["question"])
        with pytest.raises(ConfigError, match="has to be a list of steps, not 'entities'"):
            load_retriever(index, "fg", model=asked, llm_steps="entities")
    with pytest.raises(ConfigError, match="naive takes no parameters, but llm_steps"):
        load_retriever(index, "naive", model=model, llm_steps=["entities"])


def test_ensemble_may_not_hold_itself(index):
    with pytest.raises(ConfigError, match="itself"):
        EnsembleRetriever(index, EnsembleConfig(members=("ensemble", "bm25")))
