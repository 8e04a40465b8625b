import math

import pytest
import torch

from qgrag.errors import ConfigError, ModelNotFoundError
from qgrag.graph import Ragged
from qgrag.index.knowledge.build import KnowledgeGraphConfig
from qgrag.models.reward import RewardConfig, RewardModel
from qgrag.models.reward_checkpoint import Encoder
from qgrag.retrieval.evidence.items import SearchItem
from qgrag.retrieval.methods.dual.retriever import DualRetriever
from qgrag.retrieval.methods.kg import KGRetriever
from qgrag.retrieval.methods.qmkgf.expansion import expand_queries
from qgrag.retrieval.methods.qmkgf.retriever import QMKGFConfig, QMKGFRetriever
from qgrag.retrieval.methods.qmkgf.subgraphs import build_subgraphs
from tests.retrieval.hand_index import DIMENSION, hand_index

# A star around Ada: Bo, Cy and Di next to her, Ed behind Bo, Flo behind Cy, Gus behind Di.
ROWS = [
    (
        "",
        "Ada knows Bo. Ada likes Cy. Ada pays Di.",
        [("Ada", "knows", "Bo"), ("Ada", "likes", "Cy"), ("Ada", "pays", "Di")],
    ),
    ("", "Bo taught Ed.", [("Bo", "taught", "Ed")]),
    ("", "Cy met Flo.", [("Cy", "met", "Flo")]),
    ("", "Di hired Gus.", [("Di", "hired", "Gus")]),
    ("", "Zoe sings.", [("Zoe", "sings", "song")]),
]
QUERY = "Whom did the friend of Ada teach?"
VECTORS = {
    "Ada": [0, 1.0],
    "Bo": [0, 0.9],
    "Cy": [0, 0.8],
    "Di": [0, 0.1],
    "Ed": [0, 0.7],
    "Flo": [0, 0.6],
    "Gus": [0, 0.5],
    QUERY: [1.0],
    "Ada knows Bo": [0.6],
    "Ada likes Cy": [0.5],
    "Ada pays Di": [0.1],
    "Bo taught Ed": [0.9],
    "Cy met Flo": [0.2],
    "Di hired Gus": [0.0],
    "Bo taught Ed.": [0.3],
    f"{QUERY} Bo taught Ed": [0.0, 0.0, 1.0],
}


@pytest.fixture(scope="module")
def index():
    # The passage that says who was taught is found by the expanded query alone.
    table = VECTORS | {"Bo taught Ed.": [0.0, 0.0, 1.0]}
    return hand_index(ROWS, table)


def run(index, **config):
    return QMKGFRetriever(index, QMKGFConfig(**config)).retrieve([QUERY], top_k=3)[0]


def subgraphs(index, **config):
    return {s.kind: s for s in run(index, **config).evidence.subgraphs}


def test_three_subgraphs_as_the_paper_builds_them(index):
    found = subgraphs(index, nodes=2)
    assert found["one-hop"].nodes == ("Ada", "Bo", "Cy")
    assert found["multi-hop"].nodes == ("Ada", "Bo", "Cy", "Ed", "Flo")
    # Cy and Di weigh as much as Bo; equal PageRank goes to the lower row, and rows follow the alphabet.
    assert found["importance"].nodes == ("Ada", "Bo", "Cy")
    assert {(t.head, t.tail) for t in found["multi-hop"].triples} == {
        ("Ada", "Bo"),
        ("Ada", "Cy"),
        ("Bo", "Ed"),
        ("Cy", "Flo"),
    }


def test_k_bounds_every_kind(index):
    for kind, found in subgraphs(index, nodes=1, bridges=1).items():
        assert len(found.nodes) <= (3 if kind == "multi-hop" else 2)


def test_winner_threshold_and_added_triples_by_hand(index):
    evidence = run(index, nodes=2).evidence

    def cosine(*own):
        rest = sum(math.sqrt(1 - c * c) for c in own)
        return sum(own) / math.hypot(sum(own), rest)

    scores = {s.kind: s.score for s in evidence.subgraphs}
    assert scores["one-hop"] == pytest.approx(cosine(0.6, 0.5), abs=1e-5)
    assert scores["multi-hop"] == pytest.approx(cosine(0.6, 0.5, 0.9, 0.2), abs=1e-5)
    assert evidence.scorer.startswith("cosine")
    assert evidence.winner == max(scores, key=scores.get)
    assert evidence.threshold == pytest.approx(max(scores.values()))
    fused = {(f.head, f.tail): f for f in evidence.fused}
    best = evidence.winner
    own = {(t.head, t.tail) for s in evidence.subgraphs if s.kind == best for t in s.triples}
    assert {pair for pair, f in fused.items() if not f.added} == own
    assert all(f.similarity >= evidence.threshold - 1e-6 for f in fused.values() if f.added)


def test_strategies_of_table_7(index):
    everything = {("Ada", "Bo"), ("Ada", "Cy"), ("Bo", "Ed"), ("Cy", "Flo")}
    for strategy in ("all", "top5"):
        evidence = run(index, nodes=2, strategy=strategy).evidence
        assert evidence.winner is None
        assert {(f.head, f.tail) for f in evidence.fused} == everything
    assert run(index, nodes=2, strategy="cosine").evidence.scorer == "cosine"


def test_expanded_query_brings_what_the_query_alone_does_not(index):
    result = run(index, nodes=2, search_depth=1, join="text")
    hit = next(hit for hit in result.hits if hit.document_id == "d1")
    assert hit.evidence == (SearchItem("triple", "Bo taught Ed", "Bo", "Ed"),)
    bounded = run(index, nodes=2, max_expansions=1).evidence
    assert bounded.fused


def test_joined_vectors_are_sums_and_ask_the_encoder_only_for_what_the_graph_did_not_embed():
    table = VECTORS | {"Ada knows Bo": [0.6, 0.0, 0.8], "1999": [0.0, 0.0, 0.6]}
    rows = [("", "Ada knows Bo. Bo since 1999.", [("Ada", "knows", "Bo"), ("Bo", "since", "1999")])]
    own = hand_index(rows, table, KnowledgeGraphConfig(embed_from=2, embed=("triples",)))
    encoded = []
    plain = own.embedder.encode

    def counted(texts, **_):
        encoded.extend(texts)
        return plain(texts)

    own.embedder.encode = own.embedder.encode_queries = counted
    retriever = QMKGFRetriever(own, QMKGFConfig(strategy="all", nodes=2))
    query = plain([QUERY])
    rows_of = Ragged.from_lists([[own.knowledge_graph.names.index("Ada")]])
    built = build_subgraphs(own.knowledge_graph, rows_of, nodes=2, bridges=2, damping=0.85, max_neighbours=10)
    fusion = retriever.fuse(built, query)
    encoded.clear()
    made = expand_queries([QUERY], query, fusion, own.knowledge_graph, 60, own.embedder.encode_queries, "vectors")
    assert sorted(encoded) == ["1999", "Ada", "Bo"]
    expected = torch.nn.functional.normalize(query + plain([search.item for search in made.items]), dim=1)
    torch.testing.assert_close(made.vectors, expected)
    assert {(search.joined_with, search.item) for search in made.items} == {
        ("triple", "Ada knows Bo"),
        ("triple", "Bo since 1999"),
        ("entity", "Ada"),
        ("entity", "Bo"),
        ("entity", "1999"),
        ("relation", "knows"),
        ("relation", "since"),
    }


def test_rerank_by_the_query_alone_orders_by_its_cosine(index):
    result = run(index, nodes=2, rerank="query")
    assert [hit.score for hit in result.hits] == sorted((hit.score for hit in result.hits), reverse=True)
    assert max(hit.score for hit in result.hits) <= 1


def test_reward_model_scores_when_given_and_is_named(index, tmp_path):
    RewardModel(RewardConfig(dimension=DIMENSION, heads=2)).save(tmp_path / "reward")
    result = run(index, nodes=2, reward=str(tmp_path / "reward"))
    assert result.evidence.scorer == f"reward model {tmp_path / 'reward'}"
    model = RewardModel.from_folder(tmp_path / "reward")
    triples = [t for s in result.evidence.subgraphs[:1] for t in s.triples]
    items = index.embedder.encode([f"{t.head} {t.relation} {t.tail}" for t in triples])
    query = index.embedder.encode([QUERY])
    expected = model.score_subgraphs(query, items, torch.tensor([0, len(items)]))
    assert result.evidence.subgraphs[0].score == pytest.approx(float(expected), abs=1e-5)
    with pytest.raises(ModelNotFoundError):
        QMKGFRetriever(index, QMKGFConfig(reward=str(tmp_path / "nothing")))


def test_shipped_reward_model_is_taken_for_the_vectors_it_knows_and_cosine_elsewhere(index, tmp_path, monkeypatch):
    encoder = Encoder(index.embedder.name, index.embedder.fingerprint)
    RewardModel(RewardConfig(dimension=DIMENSION, heads=2), encoder).save(tmp_path / "fitting")
    RewardModel(RewardConfig(dimension=8, heads=2), Encoder("another", "other")).save(tmp_path / "foreign")

    def lacking():
        raise ModelNotFoundError("none")

    expected = {
        "reward model fitting": lambda: tmp_path / "fitting",
        "cosine (foreign was trained on vectors of another model)": lambda: tmp_path / "foreign",
        "cosine (no reward model came with this installation)": lacking,
    }
    for name, folder in expected.items():
        monkeypatch.setattr("qgrag.retrieval.methods.qmkgf.scorer.default_checkpoint", folder)
        assert run(index, nodes=2).evidence.scorer == name
    assert run(index, nodes=2, reward="").evidence.scorer == "cosine"


def test_reward_model_that_reads_tokens_or_other_vectors_is_refused_or_warned_of(index, tmp_path, caplog):
    RewardModel(RewardConfig(dimension=DIMENSION, heads=2, items="tokens")).save(tmp_path / "tokens")
    with pytest.raises(ConfigError, match="tokens"):
        run(index, reward=str(tmp_path / "tokens"))
    RewardModel(RewardConfig(dimension=DIMENSION, heads=2), Encoder("another", "x")).save(tmp_path / "other")
    run(index, reward=str(tmp_path / "other"))
    assert "'another'" in caplog.text


def test_stored_triple_vectors_give_the_same_result():
    stored = hand_index(ROWS, VECTORS, KnowledgeGraphConfig(embed=("triples",)))
    fresh = hand_index(ROWS, VECTORS, KnowledgeGraphConfig(embed=()))
    assert run(stored, nodes=2).to_dict() == run(fresh, nodes=2).to_dict()


def test_entities_of_a_query_are_merged_by_kind(index):
    graph = index.knowledge_graph
    rows = Ragged.from_lists([[graph.names.index("Bo"), graph.names.index("Cy")], [graph.names.index("Bo")], []])
    made = build_subgraphs(graph, rows, nodes=2, bridges=2, damping=0.85, max_neighbours=10)
    names = [[graph.names[n] for n in row] for row in made.nodes.to_lists()]
    assert set(names[0]) == {"Bo", "Cy", "Ada", "Ed", "Flo"}
    assert (names[3][0], set(names[3])) == ("Bo", {"Bo", "Ada", "Ed"})
    assert names[6:] == [[], [], []]
    assert made.num_queries == 3


def test_names_and_triples_are_encoded_as_the_index_encoded_them():
    own = hand_index(ROWS, VECTORS | {"Zed": [0, 0.9]})
    query = "Who knows Zed?"

    def refuse(texts):
        raise AssertionError(f"encoded as queries: {texts}")

    vectors = own.embedder.encode([query])
    own.embedder.encode_queries = refuse
    for retriever in (QMKGFRetriever(own), KGRetriever(own), DualRetriever(own)):
        assert retriever.rank([query], vectors, 3).evidence[0].links[0].how == "embedding"


def test_query_without_an_entity_falls_back_to_dense(index):
    result = QMKGFRetriever(index).retrieve(["what is this"], top_k=2)[0]
    assert result.evidence.fallback.startswith("dense retrieval")
    assert len(result.hits) == 2


@pytest.mark.parametrize("bad", [{"nodes": 0}, {"bridges": 0}, {"damping": 1.0}, {"search_depth": 0}])
def test_settings_out_of_range_are_refused(bad):
    with pytest.raises(ConfigError, match=next(iter(bad))):
        QMKGFConfig(**bad)
