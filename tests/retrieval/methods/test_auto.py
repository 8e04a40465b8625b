"""The pool that `auto` chooses from, its features, and the retriever with a model trained on the spot."""

import json
from pathlib import Path

import pytest
import torch

from qgrag.errors import ConfigError
from qgrag.index.builder import build_index
from qgrag.index.config import IndexConfig
from qgrag.index.reader import Index
from qgrag.models.evidence import EvidenceConfig, EvidenceModel
from qgrag.models.evidence_checkpoint import EvidenceCheckpoint, write_evidence_model
from qgrag.retrieval.base import Ranking
from qgrag.retrieval.evidence.items import ReasonItem, VoteItem
from qgrag.retrieval.evidence.reading import evidence_from_dict, item_from_dict
from qgrag.retrieval.methods.auto.features import (
    PAIR_FEATURES,
    feature_names,
    places,
    question_names,
    standardised,
)
from qgrag.retrieval.methods.auto.pool import gather_pool
from qgrag.retrieval.methods.auto.retriever import AutoConfig, AutoRetriever
from tests.kit.retriever_contract import RetrieverContract

MEMBERS = ("bm25", "naive", "qcg", "dual", "ppr")
QUERIES = [
    "Who founded the conservatory that Sergei Prokofiev went to?",
    "In which city was Anton Karas born?",
    "Which college did Graham Greene study at?",
]


@pytest.fixture(scope="module")
def model_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An untrained model: what is tested here holds whatever its weights are."""
    torch.manual_seed(0)
    sizes = len(feature_names(MEMBERS)), len(question_names(MEMBERS)), len(PAIR_FEATURES)
    model = EvidenceModel(EvidenceConfig(*sizes, width=16, pool_heads=2, layers=1)).eval()
    folder = tmp_path_factory.mktemp("auto") / "model"
    write_evidence_model(folder, EvidenceCheckpoint(model, MEMBERS, tuple(feature_names(MEMBERS)), 10, 30))
    return folder


@pytest.fixture(scope="module")
def auto(demo_index: Index, model_folder: Path) -> AutoRetriever:
    return AutoRetriever(demo_index, AutoConfig(model=str(model_folder), reasons=1))


class TestContract(RetrieverContract):
    @pytest.fixture(params=["model", "reciprocal ranks"])
    def make_retriever(self, demo_index, model_folder, request):
        model = str(model_folder) if request.param == "model" else ""
        return lambda: AutoRetriever(demo_index, AutoConfig(model=model))

    @pytest.fixture
    def documents(self, demo_documents):
        return demo_documents

    @pytest.fixture
    def queries(self):
        return QUERIES


def ranking(rows: list[list[int]], scores: list[list[float]]) -> Ranking:
    return Ranking(torch.tensor(rows), torch.tensor(scores))


def test_a_pool_holds_each_chunk_once_with_the_places_of_its_members() -> None:
    one = ranking([[4, 2, 7], [1, -1, -1]], [[3.0, 2.0, 1.0], [5.0, -9.0, -9.0]])
    two = ranking([[2, 9], [-1, -1]], [[0.5, 0.25], [-9.0, -9.0]])
    pool = gather_pool([one, None, two], 2, 10, 3)
    assert pool.chunks.tolist() == [[2, 4, 9], [1, -1, -1]]
    assert pool.place[0].tolist() == [[1, -1, 0], [0, -1, -1], [-1, -1, 1]]
    assert pool.score[0, 0].tolist() == [2.0, 0.0, 0.5]
    assert pool.found.tolist() == [[3.0, 0.0, 2.0], [1.0, 0.0, 0.0]]
    assert pool.present.tolist() == [True, False, True]


def test_columns_are_compared_within_their_pool() -> None:
    values = torch.tensor([[[1.0], [3.0], [3.0], [9.0]], [[5.0], [7.0], [0.0], [0.0]]])
    mask = torch.tensor([[True, True, True, False], [True, True, False, False]])
    assert places(values, mask)[..., 0].tolist() == [[0.0, 0.75, 0.75, 0.0], [0.0, 1.0, 0.0, 0.0]]
    scaled = standardised(values, mask)[..., 0]
    assert scaled[0, :3].mean().item() == pytest.approx(0, abs=1e-6)
    assert scaled[1].tolist() == pytest.approx([-1.0, 1.0, 0.0, 0.0])


def test_hits_tell_their_members_and_the_reasons(auto: AutoRetriever) -> None:
    (result,) = auto.retrieve(QUERIES[:1], top_k=3)
    assert result.evidence.pool >= 3
    assert set(result.evidence.members) == set(MEMBERS)
    for place, hit in enumerate(result.hits):
        reason, *votes = hit.evidence
        assert isinstance(reason, ReasonItem)
        assert 0 <= reason.probability <= 1
        assert all(sentence in hit.text or sentence for sentence in reason.sentences)
        assert bool(reason.contributions) == (place == 0)
        assert votes
        assert all(isinstance(vote, VoteItem) for vote in votes)
    plain = json.loads(json.dumps(result.to_dict()))
    assert evidence_from_dict(plain["evidence"]).to_dict() == plain["evidence"]
    assert [item_from_dict(item).to_dict() for item in plain["hits"][0]["evidence"]] == plain["hits"][0]["evidence"]


def test_an_index_without_graphs_is_served_by_what_is_left(
    tmp_path: Path, demo_documents, embedder, model_folder: Path
) -> None:
    config = IndexConfig(query_graph=None, knowledge_graph=None)
    build_index(demo_documents[:12], tmp_path / "index", config, embedder=embedder)
    auto = AutoRetriever(Index.open(tmp_path / "index", embedder=embedder), AutoConfig(model=str(model_folder)))
    assert auto.left_out == ("qcg", "dual", "ppr")
    (result,) = auto.retrieve(["Who wrote the music?"], top_k=2)
    assert len(result.hits) == 2
    assert set(result.evidence.members) == {"bm25", "naive"}


def test_members_that_the_model_does_not_know_are_refused(demo_index: Index, model_folder: Path) -> None:
    with pytest.raises(ConfigError, match="not fg"):
        AutoRetriever(demo_index, AutoConfig(model=str(model_folder), members=("bm25", "fg")))


def test_a_question_for_which_nothing_is_found_has_no_hit(demo_index: Index, model_folder: Path) -> None:
    for model in (str(model_folder), ""):
        auto = AutoRetriever(demo_index, AutoConfig(model=model, members=("bm25",)))
        (result,) = auto.retrieve(["zzyzx qwfpgj"], top_k=3)
        assert result.hits == ()


def test_a_small_pool_is_scored_alike_beside_a_wide_one(demo_index: Index, model_folder: Path) -> None:
    auto = AutoRetriever(demo_index, AutoConfig(model=str(model_folder), members=("bm25",)))
    few = "Karas"
    (alone,) = auto.retrieve([few], top_k=3)
    beside = auto.retrieve([few, "Who wrote the music of the film about the famous composer?"], top_k=3)[0]
    assert [hit.chunk_id for hit in alone.hits] == [hit.chunk_id for hit in beside.hits]
    assert [hit.score for hit in beside.hits] == pytest.approx([hit.score for hit in alone.hits], rel=1e-4)
