import gc
import weakref

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qgrag.corpus.records import Chunk
from qgrag.errors import ConfigError
from qgrag.extraction.records import Facts, Mention
from qgrag.index.knowledge.build import KnowledgeGraph, KnowledgeGraphConfig, build_knowledge_graph
from qgrag.retrieval.linking.known_names import known_names
from qgrag.retrieval.linking.linker import EntityLinker, EntityLinkerConfig
from tests.retrieval.hand_index import HandEmbedder

TITLES = [
    "Blind Man's Eyes",
    "Love, Honor and Oh-Baby!",
    "Love, Honor, and Oh Baby!",
    "Dead or Alive",
    "Agni (2004 film)",
    "Agni (song)",
    "Back in the U.S.A.",
    "Henry I of Ziębice",
    "John Ernest, Duke of Saxe-Eisenach",
    "The Outlaw Express",
    "Place of birth",
    "Abdul-Aziz bin Muhammad",
    "居里夫人",
    "It",
]
NAMES = [("Riga", "GPE"), ("1999", "DATE"), ("Li Hua", "PERSON"), ("LiHua", "PERSON")]


def graph_of(titles=(), names=(), vectors=None) -> KnowledgeGraph:
    chunks = [Chunk(f"d{i}", 0, 0, 1, ".", title) for i, title in enumerate(titles)]
    found = [Facts() for _ in titles]
    for i, (name, kind) in enumerate(names):
        chunks.append(Chunk(f"n{i}", 0, 0, len(name), name, ""))
        found.append(Facts((Mention(name, kind, 0, len(name)),)))
    embedder = HandEmbedder(vectors or {})
    return build_knowledge_graph(chunks, found, KnowledgeGraphConfig(), lambda texts, _: embedder.encode(texts))


@pytest.fixture(scope="module")
def linker() -> EntityLinker:
    return EntityLinker(graph_of(TITLES, NAMES))


def linked(linker: EntityLinker, query: str) -> list[tuple[str, str]]:
    return [(link.name, link.how) for link in linker.link_queries([query])[0]]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("Who directed Blind Man'S Eyes?", [("Blind Man's Eyes", "exact")]),
        (
            "Which came first, Love, Honor And Oh-Baby! or Riga?",
            [("Love, Honor and Oh-Baby!", "exact"), ("Riga", "exact")],
        ),
        ("Is Dead Or Alive a film?", [("Dead or Alive", "exact")]),
        ("Who made Agni (2004 Film)?", [("Agni (2004 film)", "exact")]),
        ("Who sang the song Agni?", [("Agni (song)", "alias")]),
        ("Was Agni a success?", [("Agni (2004 film)", "alias"), ("Agni (song)", "alias")]),
        ("Who wrote Back In The U.S.A. first?", [("Back in the U.S.A.", "exact")]),
        ("Who was Henry I Of Ziębice's father?", [("Henry I of Ziębice", "exact")]),
        ("Who was the wife of John Ernest?", [("John Ernest, Duke of Saxe-Eisenach", "alias")]),
        ("who directed the outlaw express", [("The Outlaw Express", "exact")]),
        ("What is the place of birth of Abdul-Aziz Bin Muhammad?", [("Abdul-Aziz bin Muhammad", "exact")]),
        ("居里夫人出生于哪里？", [("居里夫人", "exact")]),
        ("Did LiHua see Riga's port?", [("Li Hua", "alias"), ("Riga", "exact")]),
        ("Was it in 1999?", []),
    ],
)
def test_names_in_queries(linker, query, expected):
    assert linked(linker, query) == expected


def test_two_names_joined_by_or_are_two_and_a_name_that_holds_or_is_one():
    linker = EntityLinker(graph_of(["Dead or Alive", "Dead", "Alive"]))
    assert linked(linker, "Was Dead or Alive good?") == [("Dead or Alive", "exact")]
    other = EntityLinker(graph_of(["Dead", "Alive"]))
    assert linked(other, "Was Dead or Alive good?") == [("Dead", "exact"), ("Alive", "exact")]


def test_person_is_not_shadowed_by_a_spelling_with_a_sign():
    linker = EntityLinker(
        graph_of(names=[("\U0001f373\ufe0f LiHua", "PERSON"), ("@LiHua", "ORG"), *[("Li Hua", "PERSON")] * 3])
    )
    first, *others = linker.link_queries(["What did LiHua cook?"])[0]
    assert (first.name, first.score) == ("Li Hua", 0.95)
    assert [(link.name, link.how, link.score) for link in others] == [("@LiHua", "alias", 0.95)]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("Solaris or Stalker, which is older?", ["Solaris", "Stalker"]),
        ("Riga or Stalker?", ["Riga", "Stalker"]),
    ],
)
def test_one_word_name_may_open_the_query(query, expected):
    linker = EntityLinker(graph_of(["Solaris", "Stalker"], [("Riga", "GPE")]))
    assert [(link.name, link.how) for link in linker.link_queries([query])[0]] == [(name, "exact") for name in expected]


def test_link_tells_where_it_stands_and_how_sure_it_is(linker):
    query = "Was Riga older than Agni?"
    riga, film, song = linker.link_queries([query])[0]
    assert (query[riga.start : riga.end], riga.score) == ("Riga", 1.0)
    assert (query[film.start : film.end], film.score, song.score) == ("Agni", 0.9, 0.9)
    assert riga.to_dict()["how"] == "exact"


def test_misspelt_name_is_found_by_spelling(linker):
    link = linker.link_queries(["Who directed Blind Mans Eyez?"])[0][0]
    assert (link.name, link.how) == ("Blind Man's Eyes", "fuzzy")
    assert 0.85 <= link.score < 1
    strict = EntityLinker(linker.graph, EntityLinkerConfig(fuzzy=1))
    assert strict.link_queries(["Who directed Blind Mans Eyez?"]) == [[]]


def test_misspelt_short_form_reaches_the_title_it_stands_for():
    linker = EntityLinker(graph_of(["Solaris (1972 film)", "John Ernest, Duke of Saxe-Eisenach"]))
    for query, name in (("Who made the film Solariss?", "Solaris (1972 film)"), ("Was Jon Ernest a duke?", TITLES[8])):
        (link,) = linker.link_queries([query])[0]
        assert (link.name, link.how) == (name, "fuzzy")
        assert 0.85 * 0.9 <= link.score < 0.9


def test_unknown_name_is_found_by_its_vector_and_only_with_one():
    vectors = {"Big Apple": [0.9, 0.1], "New York City": [0.95, 0.0], "Riga": [0.0, 1.0]}
    graph = graph_of(["New York City", "Riga"], vectors=vectors)
    linker, embedder = EntityLinker(graph), HandEmbedder(vectors)
    assert linker.link_queries(["Who founded Big Apple?"]) == [[]]
    link = linker.link_queries(["Who founded Big Apple?"], embedder.encode_queries)[0][0]
    assert (link.name, link.how) == ("New York City", "embedding")
    assert link.score > 0.85
    far = EntityLinker(graph, EntityLinkerConfig(embedding=0.999))
    assert far.link_queries(["Who founded Big Apple?"], embedder.encode_queries) == [[]]


def test_given_names_are_linked_in_their_order(linker):
    links = linker.link_names([["Riga", "no such thing", "riga"], []])
    assert [(link.name, link.start) for link in links[0]] == [("Riga", -1)]
    assert links[1] == []


def test_acronyms_that_look_like_function_words_are_names_in_capitals():
    linker = EntityLinker(graph_of(["It", "Who"], [("WHO", "ORG"), ("IT", "ORG"), ("US", "GPE")]))
    assert linked(linker, "Who leads the WHO in the US?") == [("WHO", "exact"), ("US", "exact")]
    assert linked(linker, "What does IT cost?") == [("IT", "exact")]
    assert linked(linker, "WHO LED IT") == linked(linker, "who led it") == []


def test_the_names_of_a_graph_are_collected_once_and_let_go_with_it():
    graph = graph_of(["Riga"])
    known = weakref.ref(known_names(graph))
    assert known_names(graph) is known()
    del graph
    gc.collect()
    assert known() is None


def test_empty_graph_links_nothing():
    linker = EntityLinker(graph_of())
    assert linker.link_queries(["Who is Anna Berg?"], HandEmbedder({}).encode_queries) == [[]]


@pytest.mark.parametrize("bad", [{"fuzzy": 0}, {"embedding": 1.1}, {"candidates": 0}])
def test_settings_out_of_range_are_refused(bad):
    with pytest.raises(ConfigError, match="linking"):
        EntityLinkerConfig(**bad)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from([*TITLES, "or", "and", "the", "Who", "?", "x's"]), max_size=6))
def test_a_batch_links_as_its_queries_alone(words):
    linker = _shared()
    query = " ".join(words)
    both = linker.link_queries([query, "Riga", query])
    assert both[0] == both[2] == linker.link_queries([query])[0]
    for link in both[0]:
        assert query[link.start : link.end] == link.surface
        assert 0 < link.score <= 1
    assert len({link.entity for link in both[0]}) == len(both[0])


@settings(max_examples=40, deadline=None)
@given(
    st.sampled_from(TITLES[:-1]), st.sampled_from(["Who is {}?", "Is {} or Riga older?", "{}", "Where was {}'s son?"])
)
def test_every_title_is_found_however_it_is_asked_for(title, form):
    found = {link.name for link in _shared().link_queries([form.format(title)])[0]}
    assert title in found


_CACHE: list[EntityLinker] = []


def _shared() -> EntityLinker:
    if not _CACHE:
        _CACHE.append(EntityLinker(graph_of(TITLES, NAMES)))
    return _CACHE[0]
