"""What each pipeline shows for one question of the demo corpus, as read off the notes by hand.

'Battleship Potemkin' stands in one sentence of one note, that on Sergei Eisenstein, which says that he was born in
Riga; Riga has a note of its own.
"""

import pytest

from qgrag.retrieval.evidence.items import SearchItem
from qgrag.retrieval.registry import load_retriever

QUESTION = "Who founded the city in which the director of Battleship Potemkin was born?"
FILM, DIRECTOR = "Battleship Potemkin", "Sergei Eisenstein"
SENTENCE = (
    "Strike and Battleship Potemkin, both of 1925, made him famous; the massacre on the Odessa steps in the second is "
    "still studied for its cutting."
)


@pytest.fixture(scope="module")
def ask(demo_index):
    return lambda name, **parameters: load_retriever(demo_index, name, **parameters).retrieve([QUESTION], top_k=3)[0]


def triple(item):
    return item.head, item.relation, item.tail


def test_dual_finds_the_director_and_his_birthplace(ask):
    result = ask("dual")
    assert [(link.name, link.how) for link in result.evidence.links] == [(FILM, "exact")]
    assert [(node.name, node.kind) for node in result.evidence.nodes] == [
        (FILM, "explicit"),
        (DIRECTOR, "implicit"),
    ]
    (path,) = result.evidence.paths
    assert [(*triple(step), step.forward) for step in path.steps] == [(DIRECTOR, "mentions", FILM, False)]
    born = [item for item in result.evidence.triples if triple(item) == (DIRECTOR, "born in", "Riga")]
    assert [item.chunks for item in born] == [("sergei-eisenstein.md-0",)]
    assert [hit.document_id for hit in result.hits[:2]] == ["sergei-eisenstein.md", "riga.md"]
    assert [triple(item) for item in result.hits[1].evidence] == [(DIRECTOR, "born in", "Riga")]


def test_fg_reads_the_sentence_on_the_film_and_those_one_hop_away(ask):
    result = ask("fg")
    (entity,) = result.evidence.entities
    assert (entity.entity, entity.weak[0], len(entity.weak)) == (FILM, FILM, 5)
    assert entity.questions[0] == f"{FILM}: {QUESTION}"
    assert SENTENCE in entity.summary
    assert not set(entity.weak) & set(entity.strong)
    told = {(item.of, item.text): item.weight for item in result.hits[0].evidence}
    assert result.hits[0].document_id == "sergei-eisenstein.md"
    assert told[FILM, SENTENCE] == 1.0
    assert {weight for (of, _), weight in told.items() if of == DIRECTOR} == {0.5}


def test_qmkgf_has_one_neighbour_and_one_triple_to_fuse(ask):
    result = ask("qmkgf", reward="")
    subgraphs = {subgraph.kind: subgraph for subgraph in result.evidence.subgraphs}
    assert subgraphs["one-hop"].nodes == (FILM, DIRECTOR)
    assert [triple(item) for item in subgraphs["one-hop"].triples] == [(DIRECTOR, "mentions", FILM)]
    assert subgraphs["multi-hop"].nodes[:2] == (FILM, DIRECTOR)
    assert {item.head for item in subgraphs["multi-hop"].triples} >= {DIRECTOR}
    assert "Riga" in subgraphs["importance"].nodes
    assert (result.evidence.scorer, result.evidence.winner) == ("cosine", "one-hop")
    assert [(triple(item), item.added) for item in result.evidence.fused] == [((DIRECTOR, "mentions", FILM), False)]
    assert result.hits[0].evidence == (SearchItem("entity", DIRECTOR),)


def test_the_ensemble_tells_the_places_that_its_members_gave(ask):
    result = ask("ensemble")
    first = {item.retriever: item.rank for item in result.hits[0].evidence}
    assert (result.hits[0].document_id, first) == ("sergei-eisenstein.md", {"dual": 1, "qcg": 1})
    assert set(result.evidence.members) == {"dual", "qcg"}
