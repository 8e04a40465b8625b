from dataclasses import replace
from types import SimpleNamespace

import pyarrow.compute as pc
import pytest
import torch

from qgrag.errors import ConfigError, MissingComponentError
from qgrag.index.knowledge.build import KnowledgeGraphConfig
from qgrag.retrieval.methods.fg.retriever import FGConfig, FGRetriever
from qgrag.retrieval.steps.local import (
    LocalEntityQuestions,
    LocalEntitySummaries,
    marginal_relevance,
)
from tests.retrieval.hand_index import HandEmbedder, hand_index

ROWS = [
    ("", "Honey is made by bees.", [("Honey", "made by", "bees")]),
    ("", "Mead uses Honey.", [("Mead", "uses", "Honey")]),
    ("", "Wax comes from hives.", [("Wax", "comes from", "hives")]),
    ("", "Candle is Wax.", [("Candle", "is", "Wax")]),
    ("", "Zinc is a metal.", [("Zinc", "is", "metal")]),
]
QUERY = "How is Honey sold?"
VECTORS = {
    QUERY: [1.0],
    f"Honey: {QUERY}": [1.0],
    "What is Honey?": [0, 1.0],
    "What is Honey known for?": [0, 1.0],
    "Honey": [0, 1.0],
    "Wax": [0, 0.8, 0.6],
    "Candle": [0, 0.1, 0.99],
    "Mead": [0, 0.5],
    "Zinc": [],
    "Honey is made by bees.": [0.5],
    "Mead uses Honey.": [0.9],
    "Wax comes from hives.": [0.4],
    "Candle is Wax.": [0.6],
}
PLAIN = {"matches": 2, "dense_weight": 0.0}


@pytest.fixture(scope="module")
def index():
    return hand_index(ROWS, VECTORS)


def run(index, **config):
    return FGRetriever(index, FGConfig(**{**PLAIN, **config})).retrieve([QUERY], top_k=5)[0]


def test_weak_and_strong_context_by_hand(index):
    (entity,) = run(index, hops=0).evidence.entities
    assert entity.entity == "Honey"
    assert entity.weak == ("Honey", "Wax")
    assert entity.strong == ()
    found = run(index, hops=0, matches=3).evidence.entities[0]
    assert set(found.weak) == {"Honey", "Wax", "Mead"}
    # Wax brings Candle; of the names that are like nothing, Mead brings the first two.
    assert set(found.strong) == {"Candle", "bees", "hives"}


def test_search_reaches_neighbours_of_the_context(index):
    # from Honey and Wax one hop along triples: bees, Mead, hives, Candle
    assert run(index, hops=1).evidence.entities[0].reached == 6


def test_scores_are_weight_times_relevance(index):
    hits = {hit.document_id: hit.score for hit in run(index, matches=2, hops=1).hits}
    assert hits["d0"] == pytest.approx(0.5)
    assert hits["d1"] == pytest.approx(0.9)
    assert hits["d2"] == pytest.approx(0.4)
    assert hits["d3"] == pytest.approx(0.6)
    assert "d4" not in hits


def test_without_expansion_only_the_weak_matches_speak(index):
    result = run(index, expansion=False, matches=1)
    (entity,) = result.evidence.entities
    assert (entity.weak, entity.strong, entity.reached) == (("Honey",), (), 1)
    assert {hit.document_id for hit in result.hits} == {"d0", "d1"}


def test_summary_holds_the_most_relevant_sentence_first_and_is_left_out_on_demand(index):
    (entity,) = run(index, summary_sentences=1).evidence.entities
    assert entity.summary == "Mead uses Honey."
    assert entity.questions[0] == f"Honey: {QUERY}"
    (bare,) = run(index, summaries=False).evidence.entities
    assert (bare.summary, bare.questions) == ("", ())


def test_descriptions_are_bounded_and_named(index):
    result = run(index, max_descriptions=1)
    assert len(result.hits) == 1
    (item,) = result.hits[0].evidence
    assert (item.kind, item.entity, item.text) == ("description", "Honey", "Mead uses Honey.")


def test_steps_given_take_the_place_of_the_local_ones(index):
    seen = {}

    def questions(queries, entities):
        return [["why?"] for _ in entities]

    def summarise(queries, entities, descriptions, asked):
        seen.update(entities=list(entities), asked=list(asked), told=[set(row) for row in descriptions])
        return ["short" for _ in entities]

    retriever = FGRetriever(index, FGConfig(**PLAIN), questions=questions, summarise=summarise)
    (entity,) = retriever.retrieve([QUERY])[0].evidence.entities
    assert (entity.questions, entity.summary) == (("why?",), "short")
    assert seen["entities"] == ["Honey"]
    assert "Mead uses Honey." in seen["told"][0]


@pytest.mark.parametrize("stored", [True, False])
def test_stored_vectors_give_the_same_ranking_and_spare_the_encoder(stored):
    embed = ("descriptions",) if stored else ()
    own = hand_index(ROWS, VECTORS, KnowledgeGraphConfig(embed=embed))
    encoded = []
    plain = own.embedder.encode

    def counted(texts, **_):
        encoded.extend(texts)
        return plain(texts)

    own.embedder.encode = own.embedder.encode_queries = counted
    result = run(own)
    assert {hit.document_id: hit.score for hit in result.hits}["d1"] == pytest.approx(0.9)
    assert result.evidence.entities[0].summary.startswith("Mead uses Honey.")
    told = {text for _, text, _ in ROWS}
    assert bool(told & set(encoded)) is not stored


def test_query_without_an_entity_falls_back_to_dense(index):
    result = FGRetriever(index).retrieve(["what is this"], top_k=2)[0]
    assert result.evidence.fallback.startswith("dense retrieval")


def test_graph_without_any_description_is_refused_and_one_without_this_one_falls_back(index):
    graph = index.knowledge_graph
    bare = SimpleNamespace(**{**vars(index), "knowledge_graph": replace(graph, descriptions=graph.descriptions[:0])})
    with pytest.raises(MissingComponentError, match="extractor: entities"):
        FGRetriever(bare)
    zinc = graph.names.index("Zinc")
    bare.knowledge_graph = replace(graph, descriptions=graph.descriptions.filter(pc.field("entity") == zinc))
    result = FGRetriever(bare, FGConfig(**PLAIN)).retrieve([QUERY], top_k=2)[0]
    assert "no description is about" in result.evidence.fallback
    assert len(result.hits) == 2


@pytest.mark.parametrize("bad", [{"matches": 0}, {"hops": -1}, {"decay": 0.0}, {"max_descriptions": 0}])
def test_settings_out_of_range_are_refused(bad):
    with pytest.raises(ConfigError, match=next(iter(bad))):
        FGConfig(**bad)


def test_marginal_relevance_prefers_what_is_new():
    vectors = torch.nn.functional.normalize(torch.tensor([[1.0, 0.0], [1.0, 0.1], [0.0, 1.0]]), dim=1)
    relevance = torch.tensor([0.9, 0.89, 0.5])
    assert marginal_relevance(vectors, relevance, 2, 0.0) == [0, 1]
    assert marginal_relevance(vectors, relevance, 2, 0.5) == [0, 2]
    assert marginal_relevance(vectors, relevance, 9, 0.5) == [0, 2, 1]
    assert marginal_relevance(vectors[:0], relevance[:0], 2, 0.5) == []


def test_local_summaries_of_a_batch_with_nothing_told():
    embedder = HandEmbedder({"a": [0.9], "b": [0.1], "q": [1.0]})
    step = LocalEntitySummaries(embedder.encode, sentences=1)
    assert step(["q", "q"], ["X", "Y"], [["b", "a"], []], [[], []]) == ["a", ""]
    with pytest.raises(ValueError, match="novelty"):
        LocalEntitySummaries(embedder.encode, novelty=2)


def test_local_questions_turn_the_query_to_each_entity():
    rows = LocalEntityQuestions()(["How?", "How?"], ["A", "B"])
    assert rows[0][0] == "A: How?"
    assert all("B" in question for question in rows[1])
