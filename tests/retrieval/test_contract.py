import json

import pytest

from qgrag.demo import demo_questions_path
from qgrag.retrieval.registry import RETRIEVERS, load_retriever
from tests.kit.retriever_contract import RetrieverContract


@pytest.fixture(scope="session")
def demo_queries() -> list[str]:
    lines = demo_questions_path().read_text(encoding="utf-8").splitlines()
    return [json.loads(line)["question"] for line in lines[:12]]


@pytest.mark.parametrize("name", RETRIEVERS)
class TestEveryRetriever(RetrieverContract):
    """Each registered retriever on the demo corpus."""

    @pytest.fixture
    def make_retriever(self, demo_index, name):
        return lambda: load_retriever(demo_index, name)

    @pytest.fixture
    def documents(self, demo_documents):
        return demo_documents

    @pytest.fixture
    def queries(self, demo_queries):
        return demo_queries
