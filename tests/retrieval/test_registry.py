from types import SimpleNamespace
from typing import Any

import pytest
import torch

from qgrag.errors import ConfigError
from qgrag.retrieval.base import Ranking, Retriever
from qgrag.retrieval.registry import RETRIEVERS, load_retriever, retriever_settings

MODEL: Any = SimpleNamespace()


class OneChunkRetriever(Retriever):
    """Finds the first chunk, whatever is asked."""

    name = "one-chunk"
    needs_vectors = False

    def rank(self, queries, vectors, top_k):
        assert vectors.shape == (len(queries), 0)
        return Ranking(torch.zeros(len(queries), 1, dtype=torch.long), torch.ones(len(queries), 1))


def test_every_name_is_the_name_of_its_class():
    for name in RETRIEVERS:
        assert retriever_settings(name)["retriever"] == name


def test_a_method_is_registered_by_one_line(demo_index, monkeypatch):
    monkeypatch.setitem(RETRIEVERS, "one-chunk", f"{__name__}.OneChunkRetriever")
    (result,) = load_retriever(demo_index, "one-chunk").retrieve(["Who?"])
    assert [hit.chunk_id for hit in result.hits] == [demo_index.chunks[0].id]


def test_settings_check_the_steps_as_loading_does():
    with pytest.raises(ConfigError, match="did you mean 'questions'"):
        retriever_settings("fg", llm_steps=["question"])
    with pytest.raises(ConfigError, match="has to be a list of steps, not 'entities'"):
        retriever_settings("dual", llm_steps="entities")
    assert "llm_steps" not in retriever_settings("fg", llm_steps=["questions"])


def test_dual_without_implicit_nodes_has_no_step_that_chooses_them(demo_index):
    assert load_retriever(demo_index, "dual", model=MODEL).llm_steps == ("entities", "implicit")
    assert load_retriever(demo_index, "dual", model=MODEL, implicit_nodes=0).llm_steps == ("entities",)
    with pytest.raises(ConfigError, match="implicit"):
        load_retriever(demo_index, "dual", implicit_nodes=0, llm_steps=["implicit"])


def test_retrievers_of_retrievers_hand_the_model_on(demo_index):
    made = load_retriever(demo_index, "ensemble", members=["dual", "kg"], model=MODEL)
    assert made.llm_steps == ("model", "prompts")
    assert [member.llm_steps for member in made.members] == [("entities", "implicit"), ("entities",)]
