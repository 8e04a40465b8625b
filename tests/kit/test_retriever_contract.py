"""The contract accepts a retriever that keeps it and rejects each way of breaking it."""

import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from qgrag.corpus.records import Document
from qgrag.corpus.searchable import is_blank
from qgrag.errors import InputError
from qgrag.retrieval.evidence.base import OtherItem
from qgrag.retrieval.results import Hit, RetrievalResult
from tests.kit.retriever_contract import RetrieverContract

DOCUMENTS = (
    Document("a", "Ada Lovelace wrote notes on the engine.", "Ada"),
    Document("b", "The engine was planned by Charles Babbage.", "Babbage"),
    Document("c-1", "Alan Turing knew of the notes of Lovelace.", "Turing"),
    Document("d", "Zuse built a machine in Berlin.", "Zuse"),
)
QUERIES = ("Who wrote notes?", "Who planned the engine?", "Where was the machine built?")


class WordOverlap:
    """Ranks whole documents by the words that they share with the query."""

    def retrieve(self, queries: Sequence[str], top_k: int) -> list[RetrievalResult]:
        if isinstance(queries, str):
            raise InputError("give a list of queries")
        if top_k < 1:
            raise InputError(f"top_k has to be at least 1, not {top_k}")
        for position, query in enumerate(queries):
            if is_blank(query):
                raise InputError(f"query {position} is blank")
        return [self.rank(query, top_k) for query in queries]

    def rank(self, query: str, top_k: int) -> RetrievalResult:
        words = set(query.lower().strip("?").split())
        hits = []
        for document in DOCUMENTS:
            shared = sorted(words & set(document.text.lower().strip(".").split()))
            text = document.text
            evidence = tuple(OtherItem("word", {"word": word}) for word in shared)
            hits.append(
                Hit(
                    f"{document.id}-0", document.id, (document.id,), 0, len(text), float(len(shared)), text,
                    document.title, evidence,
                )
            )  # fmt: skip
        hits.sort(key=lambda hit: -hit.score)
        return RetrievalResult(query, "overlap", tuple(hits[:top_k]))


class TestFaithful(RetrieverContract):
    @pytest.fixture
    def make_retriever(self) -> Callable[[], WordOverlap]:
        return WordOverlap

    @pytest.fixture
    def documents(self) -> Sequence[Document]:
        return DOCUMENTS

    @pytest.fixture
    def queries(self) -> Sequence[str]:
        return QUERIES


def with_first_hit(**changes: Any) -> type[WordOverlap]:
    class Changed(WordOverlap):
        def rank(self, query: str, top_k: int) -> RetrievalResult:
            result = super().rank(query, top_k)
            return replace(result, hits=(replace(result.hits[0], **changes), *result.hits[1:]))

    return Changed


class Reversed(WordOverlap):
    def retrieve(self, queries: Sequence[str], top_k: int) -> list[RetrievalResult]:
        return super().retrieve(queries, top_k)[::-1]


class Unsorted(WordOverlap):
    def rank(self, query: str, top_k: int) -> RetrievalResult:
        result = super().rank(query, top_k)
        return replace(result, hits=result.hits[::-1])


class IgnoresTopK(WordOverlap):
    def rank(self, query: str, top_k: int) -> RetrievalResult:
        return super().rank(query, 100)


class MixesUpBatches(WordOverlap):
    def retrieve(self, queries: Sequence[str], top_k: int) -> list[RetrievalResult]:
        results = super().retrieve(queries, top_k)
        return [replace(result, hits=results[0].hits) for result in results]


class Random(WordOverlap):
    def rank(self, query: str, top_k: int) -> RetrievalResult:
        result = super().rank(query, top_k)
        return replace(result, hits=tuple(replace(hit, score=1 - random.random()) for hit in result.hits[:1]))


class Careless(WordOverlap):
    def retrieve(self, queries: Sequence[str], top_k: int) -> list[RetrievalResult]:
        return [self.rank(query, max(top_k, 1)) for query in queries]


def run(name: str, retriever: type[WordOverlap], **parameters: Any) -> None:
    test = getattr(RetrieverContract(), name)
    fixtures = {"make_retriever": retriever, "documents": DOCUMENTS, "queries": QUERIES} | parameters
    wanted = test.__code__.co_varnames[1 : test.__code__.co_argcount]
    test(**{key: fixtures[key] for key in wanted})


@pytest.mark.parametrize(
    ("test", "retriever"),
    [
        ("test_one_result_a_query_in_order", Reversed),
        ("test_batched_equals_one_by_one", MixesUpBatches),
        ("test_order_of_queries_does_not_matter", MixesUpBatches),
        ("test_repeats_itself_exactly", Random),
        ("test_hits_are_ranked_and_traceable", Unsorted),
        ("test_hits_are_ranked_and_traceable", with_first_hit(score=float("nan"))),
        ("test_hits_are_ranked_and_traceable", with_first_hit(score=float("inf"))),
        ("test_hits_are_ranked_and_traceable", with_first_hit(start=1)),
        ("test_hits_are_ranked_and_traceable", with_first_hit(text="made up")),
        ("test_hits_are_ranked_and_traceable", with_first_hit(document_ids=("z", "a"))),
        ("test_hits_are_ranked_and_traceable", with_first_hit(chunk_id="z-0")),
    ],
)
def test_rejects(test: str, retriever: type[WordOverlap]) -> None:
    with pytest.raises(AssertionError):
        run(test, retriever)


def test_rejects_a_ranking_longer_than_top_k() -> None:
    with pytest.raises(AssertionError):
        run("test_top_k_cuts_the_same_ranking", IgnoresTopK, top_k=1)


def test_rejects_evidence_that_is_not_json() -> None:
    with pytest.raises(TypeError, match="not JSON serializable"):
        run("test_results_are_json", with_first_hit(evidence=(OtherItem("node", {"node": {1, 2}}),)))


@pytest.mark.parametrize(
    ("test", "parameters"),
    [
        ("test_blank_query_is_refused_by_position", {"blank": " "}),
        ("test_top_k_below_one_is_refused", {"top_k": 0}),
        ("test_a_bare_text_is_refused", {}),
    ],
)
def test_rejects_missing_checks(test: str, parameters: dict[str, Any]) -> None:
    with pytest.raises(pytest.fail.Exception, match="DID NOT RAISE"):
        run(test, Careless, **parameters)
