from dataclasses import replace
from types import SimpleNamespace

import pyarrow as pa
import pytest

from qgrag.errors import ConfigError
from qgrag.retrieval.evidence.items import PathItem, PathStep
from qgrag.retrieval.methods.dual.retriever import DualConfig, DualRetriever
from qgrag.retrieval.steps.protocols import QueryEntitySet
from tests.retrieval.hand_index import hand_index

ROWS = [
    (
        "Night Train",
        "Night Train was directed by Ada Moss and stars Bo Lind.",
        [("Night Train", "directed by", "Ada Moss"), ("Night Train", "stars", "Bo Lind")],
    ),
    ("Ada Moss", "Ada Moss was born in Riga.", [("Ada Moss", "born in", "Riga")]),
    ("Bo Lind", "Bo Lind lives in Oslo.", [("Bo Lind", "lives in", "Oslo")]),
    ("Riga", "Riga is a port.", [("Riga", "is", "port")]),
    ("Elsewhere", "Elsewhere is far.", [("Elsewhere", "is", "far")]),
]
QUERY = "Where was the director of Night Train born?"
VECTORS = {
    QUERY: [1.0],
    "directed by": [0.8],
    "born in": [0.5],
    "stars": [0.1],
    "lives in": [0.2],
    "Elsewhere\nElsewhere is far.": [0.9],
}
PLAIN = {"specificity": 0.0, "dense_weight": 0.0, "path_weight": 0.1}


@pytest.fixture(scope="module")
def index():
    return hand_index(ROWS, VECTORS)


def run(index, query=QUERY, **config):
    return DualRetriever(index, DualConfig(**{**PLAIN, **config})).retrieve([query], top_k=5)[0]


def test_nodes_triples_and_paths_of_a_two_hop_question(index):
    evidence = run(index, implicit_nodes=1).evidence
    assert [(n.name, n.kind) for n in evidence.nodes] == [
        ("Night Train", "explicit"),
        ("Ada Moss", "implicit"),
    ]
    assert {(t.head, t.relation, t.tail) for t in evidence.triples} == {
        ("Night Train", "directed by", "Ada Moss"),
        ("Night Train", "stars", "Bo Lind"),
        ("Ada Moss", "born in", "Riga"),
    }
    assert evidence.triples[0].chunks == ("d0-0",)
    assert evidence.triples[0].similarity == pytest.approx(0.8)
    step = PathStep("Night Train", "directed by", "Ada Moss", ("d0-0",), forward=True)
    assert evidence.paths == (PathItem((step,)),)


def test_scores_of_chunks_are_as_worked_out_by_hand(index):
    hits = {hit.document_id: hit.score for hit in run(index, implicit_nodes=1).hits}
    # weights: Night Train 1, Ada Moss 0.6; a triple counts weight * (0.3 + similarity), a third of three in a chunk
    film = (1.1 + 0.4) / 3 + 0.6 * 1.1 / 3 + 0.5 + 0.1
    director = 0.6 * 0.8 / 3 + 0.5 * 0.6
    assert hits["d0"] == pytest.approx(film)
    assert hits["d1"] == pytest.approx(max(director, 0.5 * 1.1))
    assert hits["d2"] == pytest.approx(0.5 * 0.4)
    assert hits["d3"] == pytest.approx(0.5 * 0.6 * 0.8)
    assert "d4" not in hits


def test_order_of_hits_follows_the_question(index):
    assert [hit.document_id for hit in run(index, implicit_nodes=1).hits] == ["d0", "d1", "d3", "d2"]


def test_hit_evidence_holds_what_its_chunk_says_or_what_leads_to_its_title(index):
    hits = {hit.document_id: hit for hit in run(index).hits}
    for hit in hits.values():
        for item in hit.evidence:
            if item.kind == "triple":
                assert hit.chunk_id in item.chunks or hit.title in (item.head, item.tail)
            else:
                assert hit.chunk_id in [c for s in item.steps for c in s.chunks]
    (item,) = hits["d3"].evidence
    assert (item.head, item.relation, item.tail) == ("Ada Moss", "born in", "Riga")


def test_each_view_can_be_left_out(index):
    assert run(index, triples=False).evidence.triples == ()
    assert run(index, paths=False).evidence.paths == ()
    assert {n.kind for n in run(index, implicit_nodes=0).evidence.nodes} == {"explicit"}
    with pytest.raises(ConfigError, match="both off"):
        DualConfig(triples=False, paths=False)


def test_path_against_a_triple_is_shown_with_the_triples_own_direction(index):
    query = "What joins Riga and Bo Lind?"
    paths = run(index, query, implicit_nodes=0).evidence.paths
    assert [[(s.head, s.relation, s.tail, s.forward) for s in p.steps] for p in paths] == [
        [
            ("Ada Moss", "born in", "Riga", False),
            ("Night Train", "directed by", "Ada Moss", False),
            ("Night Train", "stars", "Bo Lind", True),
        ]
    ]


def test_query_without_an_entity_falls_back_to_dense_and_says_so(index):
    results = DualRetriever(index, DualConfig()).retrieve(["what is this about", QUERY], top_k=3)
    assert results[0].evidence.fallback.startswith("dense retrieval")
    assert len(results[0].hits) == 3
    assert results[1].evidence.fallback is None


def test_entity_that_is_only_mentioned_falls_back_and_says_so(index):
    graph = index.knowledge_graph
    mentions = graph.mentions.set_column(3, "titled", pa.array([False] * graph.mentions.num_rows))
    bare = replace(graph, triples=graph.triples[:0], mentions=mentions)
    bare_index = SimpleNamespace(**{**vars(index), "knowledge_graph": bare})
    result = DualRetriever(bare_index, DualConfig()).retrieve([QUERY], top_k=3)[0]
    assert "no triple or title is about" in result.evidence.fallback
    assert len(result.hits) == 3


def test_steps_given_take_the_place_of_the_local_ones(index):
    asked = {}

    def entities(queries):
        return [QueryEntitySet(explicit=("Riga",), enhanced=("Bo Lind",)) for _ in queries]

    def implicit(queries, nodes, triples):
        asked.update(nodes=nodes, triples=triples)
        return [["Ada Moss", "Nobody", "Riga"] for _ in queries]

    retriever = DualRetriever(index, DualConfig(**PLAIN), entities=entities, implicit=implicit)
    evidence = retriever.retrieve([QUERY])[0].evidence
    assert [(n.name, n.kind) for n in evidence.nodes] == [
        ("Riga", "explicit"),
        ("Bo Lind", "explicit"),
        ("Ada Moss", "implicit"),
    ]
    assert asked["nodes"] == [["Riga", "Bo Lind"]]
    assert ("Ada Moss", "born in", "Riga") in {(t.head, t.relation, t.tail) for t in asked["triples"][0]}


def test_a_query_that_the_step_could_not_read_is_linked_by_rules(index):
    def entities(queries):
        return [None if query == QUERY else QueryEntitySet(explicit=("Riga",)) for query in queries]

    by_rules = DualRetriever(index, DualConfig(**PLAIN)).retrieve([QUERY])[0].evidence
    unread, read = DualRetriever(index, DualConfig(**PLAIN), entities=entities).retrieve([QUERY, "Why?"])
    assert unread.evidence.nodes == by_rules.nodes
    assert read.evidence.nodes[0].name == "Riga"


def test_hub_keeps_its_best_triples_and_does_not_drown_the_rest():
    crowd = [("Hub", f"knows {i}", f"Person {i}") for i in range(3000)]
    rows = [("", "Hub knows many.", crowd), *ROWS]
    index = hand_index(rows, VECTORS | {"knows 7": [0.9]})
    retriever = DualRetriever(index, DualConfig(max_triples=20))
    result = retriever.retrieve(["What do Hub and Night Train share, asks the director?"], top_k=5)[0]
    assert len(result.evidence.triples) < 3 * 20
    hub = DualRetriever(index, DualConfig(max_triples=20)).retrieve(["Whom does Hub know?"])[0]
    assert len(hub.evidence.triples) <= 4 * 20
    assert "d1" in {hit.document_id for hit in result.hits}


@pytest.mark.parametrize("bad", [{"implicit_nodes": -1}, {"max_triples": 0}, {"max_hops": 0}, {"dense_weight": -1}])
def test_settings_out_of_range_are_refused(bad):
    with pytest.raises(ConfigError, match=next(iter(bad))):
        DualConfig(**bad)
