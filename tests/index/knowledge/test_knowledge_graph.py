import logging
from collections.abc import Sequence
from dataclasses import replace
from hashlib import blake2b

import pyarrow as pa
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from qgrag.corpus.records import Chunk
from qgrag.errors import ConfigError, IndexFormatError
from qgrag.extraction.records import ALSO_CALLED, Description, Facts, Mention, Triple
from qgrag.index.knowledge.build import (
    MAY_BE,
    KnowledgeGraph,
    KnowledgeGraphConfig,
    build_knowledge_graph,
    preview_merges,
)
from qgrag.index.knowledge.entity_merge import EntityMergeConfig, similar_merges
from qgrag.names.forms import without_spaces
from qgrag.names.keys import EntityNames, NameKeys


def encode(texts: Sequence[str], description: str = "") -> Tensor:
    """Unit vectors that depend on the text alone."""
    rows = [list(blake2b(text.encode(), digest_size=8).digest()) for text in texts]
    return torch.nn.functional.normalize(torch.tensor(rows, dtype=torch.float32).view(-1, 8) - 127.5, dim=1)


def chunk(name: str, text: str, title: str = "") -> Chunk:
    return Chunk(name, 0, 0, len(text), text, title)


def facts(text: str, *names: tuple[str, str], triples: Sequence[tuple[str, str, str]] = ()) -> Facts:
    """Facts in which every name is mentioned where the text first holds it."""
    mentions = [Mention(n, kind, text.find(n), text.find(n) + len(n)) for n, kind in names]
    return Facts(
        tuple(mentions),
        tuple(Triple(h, r, t, text) for h, r, t in triples),
        tuple(Description(n, text) for n, _ in names),
    )


def build(rows: Sequence[tuple[Chunk, Facts]], config: KnowledgeGraphConfig | None = None) -> KnowledgeGraph:
    return build_knowledge_graph([c for c, _ in rows], [f for _, f in rows], config or KnowledgeGraphConfig(), encode)


def says(graph: KnowledgeGraph) -> set[tuple[str, str, str, tuple[int, ...]]]:
    return {
        (graph.names[row["head"]], row["relation"], graph.names[row["tail"]], tuple(row["chunks"]))
        for row in graph.triples.to_pylist()
    }


def same(a: KnowledgeGraph, b: KnowledgeGraph) -> bool:
    tables = ("entities", "triples", "mentions", "descriptions", "merges")
    return all(getattr(a, t).equals(getattr(b, t)) for t in tables) and torch.equal(a.vectors, b.vectors)


ROWS = [
    (
        chunk("a", "Anna Berg founded Orbis in Oslo.", "Anna Berg"),
        facts(
            "Anna Berg founded Orbis in Oslo.",
            ("Anna Berg", "PERSON"),
            ("Orbis", "ORG"),
            ("Oslo", "GPE"),
            triples=[("Anna Berg", "founded", "Orbis"), ("Anna Berg", "founded in", "Oslo")],
        ),
    ),
    (
        chunk("b", "ANNA BERG's brother is Carl Berg.", "Carl Berg"),
        facts(
            "ANNA BERG's brother is Carl Berg.",
            ("ANNA BERG", "PERSON"),
            ("Carl Berg", "PERSON"),
            triples=[("ANNA BERG", "brother", "Carl Berg"), ("Carl Berg", "is", "carl berg")],
        ),
    ),
    (
        chunk("c", "Orbis is a publisher. Anna Berg founded it."),
        facts(
            "Orbis is a publisher. Anna Berg founded it.",
            ("Orbis", "ORG"),
            ("Anna Berg", "PERSON"),
            triples=[("Anna Berg", "Founded", "Orbis"), ("Orbis", "is", "publisher")],
        ),
    ),
]


def test_names_that_differ_in_case_are_one_entity_with_aliases():
    graph = build(ROWS)
    row = graph.names.index("Anna Berg")
    assert graph.aliases[row] == ["ANNA BERG"]
    assert graph.types[row] == "PERSON"
    assert graph.names.count("Anna Berg") == 1


def test_triples_keep_direction_weight_and_provenance():
    graph = build(ROWS)
    assert ("Anna Berg", "founded", "Orbis", (0, 2)) in says(graph)
    weight = dict(zip([s[:3] for s in map(tuple, _named(graph))], graph.edge_weight.tolist(), strict=True))
    assert weight["Anna Berg", "founded", "Orbis"] == 2.0
    assert weight["Anna Berg", "brother", "Carl Berg"] == 1.0
    assert ("Carl Berg", "brother", "Anna Berg") not in weight


def _named(graph: KnowledgeGraph) -> list[tuple[str, str, str]]:
    heads, tails = graph.edge_index.tolist()
    return [(graph.names[h], r, graph.names[t]) for h, r, t in zip(heads, graph.relations, tails, strict=True)]


def test_self_loops_are_dropped_and_counted():
    graph = build(ROWS)
    assert graph.dropped["self_loops"] == 1
    assert graph.counts()["dropped_self_loops"] == 1
    assert not (graph.edge_index[0] == graph.edge_index[1]).any()


def test_removed_chunk_takes_with_it_what_only_it_supported():
    graph = build(ROWS[:1] + ROWS[2:])
    assert "Carl Berg" not in graph.names
    assert "ANNA BERG" not in graph.aliases[graph.names.index("Anna Berg")]
    assert not any("brother" in relation for relation in graph.relations)
    assert graph.check(2) == []


def test_saved_and_loaded_graph_is_the_same_and_sound(tmp_path):
    graph = build(ROWS)
    graph.save(tmp_path)
    loaded = KnowledgeGraph.load(tmp_path)
    assert same(graph, loaded)
    assert loaded.dropped == graph.dropped
    assert loaded.check(3) == []
    assert not list(tmp_path.glob("*.pkl"))


def test_torn_file_is_named(tmp_path):
    build(ROWS).save(tmp_path)
    (tmp_path / "triples.parquet").write_bytes(b"PAR1")
    with pytest.raises(IndexFormatError, match=r"triples\.parquet"):
        KnowledgeGraph.load(tmp_path)


def test_check_names_edges_to_nowhere_loops_and_orphans():
    graph = build(ROWS)
    assert any("of 2" in problem for problem in graph.check(2))
    no_mentions = replace(
        graph,
        mentions=graph.mentions.slice(0, 0),
        triples=graph.triples.slice(0, 0),
        descriptions=graph.descriptions.slice(0, 0),
        relation_vectors=graph.relation_vectors[:0],
        description_vectors=graph.description_vectors[:0],
    )
    assert any("entities occur in no chunk" in problem for problem in no_mentions.check(3))
    heads = graph.triples["head"]
    loops = replace(graph, triples=graph.triples.set_column(2, pa.field("tail", pa.int32()), heads))
    assert any("to itself" in problem for problem in loops.check(3))


def test_empty_corpus_gives_an_empty_graph(tmp_path):
    graph = build([])
    assert (graph.num_entities, graph.num_triples, graph.check(0)) == (0, 0, [])
    graph.save(tmp_path)
    assert KnowledgeGraph.load(tmp_path).num_entities == 0


def test_pyg_view_has_both_kinds_of_nodes_and_edges():
    graph = build(ROWS)
    data = graph.to_pyg(3)
    assert data["entity"].num_nodes == graph.num_entities
    assert data["entity", "relates", "entity"].edge_index.shape == (2, graph.num_triples)
    assert data["entity", "mentioned_in", "chunk"].edge_index[1].max() == 2
    data.validate()


def test_vectors_are_zero_for_what_no_chunk_mentions():
    graph = build(ROWS)
    assert graph.vectors[graph.names.index("publisher")].abs().sum() == 0
    row = graph.names.index("Orbis")
    torch.testing.assert_close(graph.vectors[row], encode(["Orbis"])[0])


def test_names_that_occur_once_can_go_without_a_vector():
    graph = build(ROWS, KnowledgeGraphConfig(embed_from=2))
    with_vector = {name for name, has in zip(graph.names, graph.embedded.tolist(), strict=True) if has}
    assert with_vector == {"Anna Berg", "Carl Berg", "Orbis"}
    keys = [key for keys, _ in graph.known_vectors() for key in keys]
    assert len(keys) == 3 + len(graph.relation_names) + len(graph.description_texts)


def test_descriptions_and_triples_are_embedded_as_asked(tmp_path):
    graph = build(ROWS, KnowledgeGraphConfig(embed=("descriptions", "triples")))
    graph.save(tmp_path)
    loaded = KnowledgeGraph.load(tmp_path)
    torch.testing.assert_close(loaded.description_vectors, encode(loaded.description_texts))
    torch.testing.assert_close(loaded.triple_vectors, encode(loaded.triple_texts(range(loaded.num_triples))))
    shown = loaded.descriptions["text"].to_pylist()
    assert [loaded.description_texts[row] for row in loaded.description_text.tolist()] == shown
    neither = build(ROWS, KnowledgeGraphConfig(embed=()))
    assert (len(neither.description_vectors), len(neither.triple_vectors)) == (0, 0)
    assert neither.check(3) == []
    assert any("descriptions" in problem for problem in replace(graph, description_vectors=torch.ones(1, 8)).check(3))


def test_texts_of_triples_go_in_the_order_asked_for():
    graph = build(ROWS)
    rows = list(range(graph.num_triples))
    assert graph.triple_texts(rows[::-1]) == graph.triple_texts(rows)[::-1]


# --- names -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Anna Berg", "ANNA BERG’s"),
        ("LiHua", "Li Hua"),
        ("The Beatles", "Beatles"),
        ("J. K. Rowling", "J.K. Rowling"),
        ("Blind Man's Eyes", "Blind Man'S Eyes"),
        ("Saxe-Eisenach", "Saxe- Eisenach"),
        ("Café", "Cafe\u0301"),
    ],
)
def test_spellings_of_one_name_share_a_key(one, other):
    assert without_spaces(one) == without_spaces(other) != ""


@pytest.mark.parametrize(
    ("one", "other"), [("Agni (film)", "Agni"), ("Henry I", "Henry II"), ("U2 3", "U 23"), ("10 1", "1 01")]
)
def test_different_names_have_different_keys(one, other):
    assert without_spaces(one) != without_spaces(other)


def film(name: str, title: str, text: str, kind: str = "WORK_OF_ART") -> tuple[Chunk, Facts]:
    return chunk(name, text, title), Facts((Mention(title, kind, -1, -1),))


def mentions_of(name: str, text: str, surface: str, kind: str) -> tuple[Chunk, Facts]:
    return chunk(name, text), facts(text, (surface, kind))


def test_plain_name_becomes_its_only_bracketed_bearer():
    rows = [
        film("a", "Night Train (1999 film)", "A thriller."),
        mentions_of("b", "She saw Night Train twice.", "Night Train", "WORK_OF_ART"),
    ]
    graph = build(rows)
    assert graph.names == ["Night Train (1999 film)"]
    assert graph.aliases == [["Night Train"]]
    assert graph.merges.to_pylist() == [
        {"kept": "Night Train (1999 film)", "merged": "Night Train", "rule": "bracket", "similarity": 1.0}
    ]
    apart = EntityMergeConfig(apart=(("night train", "Night Train (1999 film)"),))
    assert len(build(rows, KnowledgeGraphConfig(merge=apart)).names) == 2


def test_two_bearers_stay_apart_and_are_pointed_to():
    rows = [
        film("a", "Night Train (1999 film)", "A thriller."),
        film("b", "Night Train (song)", "A blues.", "PERSON"),
        mentions_of("c", "She liked Night Train.", "Night Train", "WORK_OF_ART"),
    ]
    graph = build(rows)
    assert len(graph.names) == 3
    assert {(h, t) for h, r, t, _ in says(graph) if r == MAY_BE} == {
        ("Night Train", "Night Train (1999 film)"),
        ("Night Train", "Night Train (song)"),
    }
    assert graph.check(3) == []


def test_bearer_of_another_type_and_a_first_name_alone_are_refused():
    person = [film("a", "Mercury (planet)", "A planet.", "LOC"), mentions_of("b", "Mercury sang.", "Mercury", "PERSON")]
    assert len(build(person).names) == 2
    first = [
        film("a", "Agatha (queen)", "A queen.", "PERSON"),
        mentions_of("b", "Agatha came.", "Agatha", "PERSON"),
    ]
    config = KnowledgeGraphConfig()
    assert len(build(first, config).names) == 2
    preview = preview_merges([c for c, _ in first], [f for _, f in first], config, encode)
    assert [(m.kept, m.merged) for m in preview] == [("Agatha (queen)", "Agatha")]
    assert "many bearers" in preview[0].refused


def test_documents_whose_titles_share_a_key_stay_two_entities():
    rows = [film("a", "Outlaw Express", "A film."), film("b", "The Outlaw Express", "Another film.")]
    graph = build(rows)
    assert graph.names == ["Outlaw Express", "The Outlaw Express"]
    assert graph.mention_index.tolist() == [[0, 1], [0, 1]]


def test_text_calls_its_title_by_a_short_form_only_in_that_text():
    text = "Dikkha ruled. Dikkha fought."
    called = Facts((Mention("Dikkha", "PERSON", 0, 6),), (Triple("Min Dikkha", ALSO_CALLED, "Dikkha"),))
    rows = [(chunk("a", text, "Min Dikkha"), called), mentions_of("b", "A Dikkha lived here.", "Dikkha", "PERSON")]
    graph = build(rows)
    assert sorted(graph.names) == ["Dikkha", "Min Dikkha"]
    assert {(graph.names[e], c) for e, c in graph.mention_index.t().tolist()} == {("Min Dikkha", 0), ("Dikkha", 1)}


def test_title_is_found_in_other_texts_and_joined_to_their_title():
    text = "Their court was dominated by Edith of Wessex."
    rows = [
        film("a", "Edith of Wessex", "A queen.", "PERSON"),
        (chunk("b", text, "Harold"), facts(text, ("Edith", "PERSON"), triples=[("Edith", "ruled", "court")])),
    ]
    graph = build(rows)
    assert "Edith" not in graph.names
    assert ("Edith of Wessex", "ruled", "court", (1,)) in says(graph)
    assert ("Harold", "mentions", "Edith of Wessex", (1,)) in says(graph)
    off = build(rows, KnowledgeGraphConfig(title_mentions=False))
    assert "Edith" in off.names


def test_title_word_without_capital_or_inside_another_name_is_not_found():
    text = "The british empire and the Order of the British Empire."
    rows = [film("a", "Empire (2002 film)", "A film."), (chunk("b", text), Facts())]
    assert build(rows).mention_index.tolist() == [[0], [0]]


def test_similar_relations_between_one_pair_are_one_triple():
    text = "Anna directed Rain."
    said = [("Anna", "directed by", "Rain"), ("Anna", "directed  By", "Rain"), ("Anna", "was directed by", "Rain")]
    rows = [(chunk("a", text), facts(text, ("Anna", "PERSON"), triples=said))]
    assert {r for _, r, _, _ in says(build(rows))} == {"directed by", "was directed by"}
    loose = build(rows, KnowledgeGraphConfig(triple_similarity=0.8))
    assert {r for _, r, _, _ in says(loose)} == {"was directed by"}
    assert loose.dropped["repeated_triples"] == 1


def test_descriptions_of_a_hub_are_bounded():
    rows = [mentions_of(f"{i:02}", f"Rome, note {i}.", "Rome", "GPE") for i in range(9)]
    graph = build(rows, KnowledgeGraphConfig(max_descriptions=4))
    assert graph.descriptions["text"].to_pylist() == [f"Rome, note {i}." for i in range(4)]
    assert graph.mention_index.shape[1] == 9


def test_headings_are_no_descriptions():
    told = ["# Rome", "# Rome\n\nRome lies on the Tiber.", "Rome\n\nRome #1.\n\nOther."]
    rows = [(chunk("a", "Rome"), Facts(descriptions=tuple(Description("Rome", text) for text in told)))]
    assert build(rows).descriptions["text"].to_pylist() == ["Rome lies on the Tiber.", "Rome #1."]


def test_facts_must_match_chunks():
    with pytest.raises(ValueError, match="one entry for each of the 1 chunks; got 0"):
        build_knowledge_graph([chunk("a", "x")], [], KnowledgeGraphConfig(), encode)


# --- merging by similarity -------------------------------------------------------------------------------------------


def names_of(*entries: tuple[str, str]) -> EntityNames:
    names = EntityNames(NameKeys([]))
    for surface, kind in entries:
        names.add(surface, without_spaces(surface), kind)
    return names


def circle(*degrees: float) -> Tensor:
    angle = torch.tensor(degrees, dtype=torch.float64).deg2rad()
    return torch.stack([angle.cos(), angle.sin()], 1).float()


def done(names: EntityNames, vectors: Tensor, **config: object) -> list[tuple[str, str]]:
    proposals = similar_merges(names, vectors, EntityMergeConfig(**config))  # type: ignore[arg-type]
    return [(m.kept, m.merged) for m in proposals if not m.refused]


def test_near_names_merge_only_when_asked():
    names = names_of(("Aa", "ORG"), ("Bb", "ORG"))
    assert done(names, circle(0, 5)) == []
    assert done(names, circle(0, 5), similarity=0.9) == [("aa", "bb")]


def test_chain_of_near_names_does_not_join_its_ends():
    names = names_of(("Aa", "ORG"), ("Bb", "ORG"), ("Cc", "ORG"))
    vectors = circle(0, 10, 20)
    threshold = float(torch.tensor(15.0).deg2rad().cos())
    assert len(done(names, vectors, similarity=threshold)) == 1
    refused = [m.refused for m in similar_merges(names, vectors, EntityMergeConfig(similarity=threshold)) if m.refused]
    assert refused == ["would chain names that are not near each other"]


@pytest.mark.parametrize(
    ("one", "other", "why"),
    [
        (("Jordan", "PERSON"), ("Jordann", "GPE"), "PERSON is not GPE"),
        (("Henry I", "PERSON"), ("Henry II", "PERSON"), "numbers"),
        (("Agni (film)", "WORK_OF_ART"), ("Agni (song)", "WORK_OF_ART"), "brackets"),
        (("May 1900", "DATE"), ("May 1901", "DATE"), "values"),
    ],
)
def test_namesakes_are_refused_with_a_reason(one, other, why):
    names = names_of(one, other)
    proposals = similar_merges(names, circle(0, 1), EntityMergeConfig(similarity=0.9))
    assert len(proposals) == 1
    assert why in proposals[0].refused


def test_a_merge_is_logged_and_can_be_undone(caplog):
    rows = [
        mentions_of("a", "Intl Bank pays.", "Intl Bank", "ORG"),
        mentions_of("b", "Intl Bank lends.", "Intl Bank", "ORG"),
        mentions_of("c", "International Bank sells.", "International Bank", "ORG"),
    ]
    chunks, found = [c for c, _ in rows], [f for _, f in rows]

    def alike(texts: Sequence[str], description: str = "") -> Tensor:
        return torch.ones(len(texts), 1)

    config = KnowledgeGraphConfig(merge=EntityMergeConfig(similarity=0.9))
    with caplog.at_level(logging.INFO):
        graph = build_knowledge_graph(chunks, found, config, alike)
    assert (graph.names, graph.aliases) == (["Intl Bank"], [["International Bank"]])
    assert graph.merges.to_pylist()[0]["rule"] == "similar"
    assert "merged 1 of 2 names" in caplog.text
    undone = KnowledgeGraphConfig(merge=EntityMergeConfig(similarity=0.9, apart=(("Intl Bank", "international bank"),)))
    caplog.clear()
    with caplog.at_level(logging.INFO):
        assert len(build_knowledge_graph(chunks, found, undone, alike).names) == 2
    assert "merged 0 of 2 names: all 1 candidates were refused (kept apart by the configuration)" in caplog.text


@pytest.mark.parametrize("bad", [{"similarity": 0.0}, {"similarity": 1.5}, {"neighbours": 0}, {"apart": (("a", "!"),)}])
def test_merge_settings_out_of_range_are_refused(bad):
    with pytest.raises(ConfigError, match="merge"):
        EntityMergeConfig(**bad)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.floats(0, 90), min_size=2, max_size=9), st.floats(5, 60))
def test_every_pair_in_a_merged_group_is_near(degrees, width):
    entries = [(f"name{chr(97 + i)}", "ORG") for i in range(len(degrees))]
    names, vectors = names_of(*entries), circle(*degrees)
    threshold = float(torch.tensor(width).deg2rad().cos())
    group = {key: {key} for key in names.by_key}
    for kept, merged in done(names, vectors, similarity=threshold, neighbours=20):
        joined = group[kept] | group[merged]
        for key in joined:
            group[key] = joined
    row_of = {key: row for row, key in enumerate(sorted(names.by_key))}
    for members in group.values():
        rows = [row_of[key] for key in members]
        assert float((vectors[rows] @ vectors[rows].T).min()) >= threshold - 1e-5


# --- growth ----------------------------------------------------------------------------------------------------------

WORDS = ["Anna", "anna", "ANNA's", "Bob", "Night Train", "Night Train (film)", "The Bob", "1999", "居里", "!!", "C#"]
names_st = st.sampled_from(WORDS)
facts_st = st.builds(
    lambda mentions, triples, told: Facts(
        tuple(Mention(s, k, -1, -1) for s, k in mentions),
        tuple(Triple(h, r, t) for h, r, t in triples),
        tuple(Description(n, d) for n, d in told),
    ),
    st.lists(st.tuples(names_st, st.sampled_from(["PERSON", "ORG", "DATE", "OTHER"])), max_size=4),
    st.lists(st.tuples(names_st, st.sampled_from(["knows", "Knows", ""]), names_st), max_size=4),
    st.lists(st.tuples(names_st, st.sampled_from(["x", "y"])), max_size=3),
)
corpus_st = st.lists(st.tuples(st.sampled_from(["", *WORDS]), facts_st), max_size=5)


@settings(max_examples=80, deadline=None)
@given(corpus_st)
def test_any_graph_is_sound_and_a_second_build_equals_the_first(corpus):
    rows = [(chunk(f"d{i}", "Anna met Bob.", title), f) for i, (title, f) in enumerate(corpus)]
    graph = build(rows)
    assert graph.check(len(rows)) == []
    assert same(graph, build(rows))
    assert all(name for name in graph.names)
    assert len(set(graph.names)) == graph.num_entities


@settings(max_examples=60, deadline=None)
@given(corpus_st, st.randoms(use_true_random=False))
def test_order_of_the_chunks_decides_nothing_but_their_numbers(corpus, random):
    rows = [(chunk(f"d{i}", "Anna met Bob.", title), f) for i, (title, f) in enumerate(corpus)]
    order = list(range(len(rows)))
    random.shuffle(order)
    graph, shuffled = build(rows), build([rows[i] for i in order])
    assert graph.entities.equals(shuffled.entities)
    assert says(graph) == {(h, r, t, tuple(sorted(order[c] for c in cs))) for h, r, t, cs in says(shuffled)}
