"""A small data set with scripted retrievers."""

from collections.abc import Mapping, Sequence

import pytest

from qgrag.corpus.records import Document
from qgrag.evaluation.datasets import Dataset, Question
from qgrag.retrieval.evidence.base import Evidence, OtherItem
from qgrag.retrieval.results import Hit, RetrievalResult


class Scripted:
    """Returns the documents that a script lists for each question, best first."""

    def __init__(self, script: Mapping[str, str], name: str = "scripted") -> None:
        self.script = script
        self.name = name
        self.asked: list[list[str]] = []
        self.evidence = Evidence()

    def retrieve(self, queries: Sequence[str], top_k: int) -> list[RetrievalResult]:
        self.asked.append(list(queries))
        return [
            RetrievalResult(
                query,
                self.name,
                tuple(hit(rank, id_) for rank, id_ in enumerate(self.script[query].split()[:top_k])),
                self.evidence,
                usage={"entities": {"calls": 1, "prompt_tokens": 10, "completion_tokens": 0}},
            )
            for query in queries
        ]


def hit(rank: int, id_: str) -> Hit:
    return Hit(f"{id_}-{rank}", id_, (id_,), 0, 5, 1 / (1 + rank), f"text of {id_}", evidence=(OtherItem("script"),))


@pytest.fixture
def dataset() -> Dataset:
    return Dataset(
        "tiny",
        tuple(Document(id_, f"text of {id_}") for id_ in "abcd"),
        (
            Question("1", "first?", ("yes",), ("a",), "single"),
            Question("2", "second?", (), ("b", "c"), "multi"),
            Question("3", "nobody knows?", (), (), "null"),
            Question("4", "third?", (), ("d",), "single"),
        ),
        problems=("question '4': its evidence 'z' names no document",),
        files={"questions": {"name": "q.jsonl", "sha256": "00"}},
    )


@pytest.fixture
def good() -> Scripted:
    return Scripted({"first?": "a b", "second?": "b c", "nobody knows?": "a", "third?": "c d"}, "good")


@pytest.fixture
def bad() -> Scripted:
    return Scripted({"first?": "b c", "second?": "a b", "nobody knows?": "", "third?": ""}, "bad")
