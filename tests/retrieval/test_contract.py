import json

import pytest

from qgrag.demo import demo_questions_path
from qgrag.retrieval.registry import RETRIEVERS, load_retriever
from tests.kit.retriever_contract import MakeRetriever, RetrieverContract
from tests.retrieval.cross_encoders import write_cross_encoder

RETRIEVING = [name for name in RETRIEVERS if name != "llm-only"]


@pytest.fixture(scope="session")
def demo_queries() -> list[str]:
    lines = demo_questions_path().read_text(encoding="utf-8").splitlines()
    return [json.loads(line)["question"] for line in lines[:12]]


@pytest.fixture(scope="session")
def cross_encoder(tmp_path_factory) -> str:
    return str(write_cross_encoder(tmp_path_factory.mktemp("models") / "cross-encoder"))


@pytest.mark.parametrize("name", RETRIEVING)
class TestEveryRetriever(RetrieverContract):
    """Each registered retriever on the demo corpus."""

    @pytest.fixture
    def make_retriever(self, demo_index, name, cross_encoder):
        if name == "rerank":
            return lambda: load_retriever(demo_index, name, depth=12, cross_encoder={"model": cross_encoder})
        made = {}
        if name.startswith("d2q"):
            return lambda: made.setdefault(name, load_retriever(demo_index, name))
        return lambda: load_retriever(demo_index, name)

    @pytest.fixture
    def documents(self, demo_documents):
        return demo_documents

    @pytest.fixture
    def queries(self, demo_queries):
        return demo_queries


class TestNoRetrieval(RetrieverContract):
    """The baseline without retrieval keeps the contract but for finding something."""

    @pytest.fixture
    def make_retriever(self, demo_index):
        return lambda: load_retriever(demo_index, "llm-only")

    @pytest.fixture
    def documents(self, demo_documents):
        return demo_documents

    @pytest.fixture
    def queries(self, demo_queries):
        return demo_queries

    def test_finds_something(self, make_retriever: MakeRetriever, queries) -> None:
        assert not any(result.hits for result in make_retriever().retrieve(queries))
