"""What every retriever has to keep: derive a test class, give it the three fixtures, and pytest does the rest.

class TestMyRetriever(RetrieverContract):
    @pytest.fixture
    def make_retriever(self, demo_index):
        return lambda: MyRetriever(demo_index)

    @pytest.fixture
    def documents(self, demo_documents):
        return demo_documents

    @pytest.fixture
    def queries(self, demo_queries):
        return demo_queries
"""

import json
import math
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from qgrag.corpus.records import Document
from qgrag.errors import InputError
from qgrag.retrieval.results import RetrievalResult

TOP_K = 10
SCORE_TOLERANCE = 1e-4
MakeRetriever = Callable[[], Any]


class RetrieverContract:
    """Tests of one retriever over one small corpus."""

    @pytest.fixture
    def make_retriever(self) -> MakeRetriever:
        """Override: a function that builds the retriever anew over an index of `documents`."""
        raise NotImplementedError

    @pytest.fixture
    def documents(self) -> Sequence[Document]:
        """Override: what the index was built from."""
        raise NotImplementedError

    @pytest.fixture
    def queries(self) -> Sequence[str]:
        """Override: at least three different questions that the documents answer."""
        raise NotImplementedError

    def test_one_result_a_query_in_order(self, make_retriever: MakeRetriever, queries: Sequence[str]) -> None:
        results = make_retriever().retrieve(queries, top_k=TOP_K)
        assert [result.query for result in results] == list(queries)
        assert len({result.retriever for result in results}) == 1
        assert results[0].retriever

    def test_finds_something(self, make_retriever: MakeRetriever, queries: Sequence[str]) -> None:
        results = make_retriever().retrieve(queries, top_k=TOP_K)
        assert any(result.hits for result in results)

    def test_batched_equals_one_by_one(self, make_retriever: MakeRetriever, queries: Sequence[str]) -> None:
        retriever = make_retriever()
        batched = retriever.retrieve(queries, top_k=TOP_K)
        single = [retriever.retrieve([query], top_k=TOP_K)[0] for query in queries]
        for together, alone in zip(batched, single, strict=True):
            assert_same_ranking(together, alone)

    def test_order_of_queries_does_not_matter(self, make_retriever: MakeRetriever, queries: Sequence[str]) -> None:
        retriever = make_retriever()
        forward = retriever.retrieve(queries, top_k=TOP_K)
        backward = retriever.retrieve(list(reversed(queries)), top_k=TOP_K)
        for result, other in zip(forward, reversed(backward), strict=True):
            assert_same_ranking(result, other)

    def test_repeats_itself_exactly(self, make_retriever: MakeRetriever, queries: Sequence[str]) -> None:
        first = make_retriever().retrieve(queries, top_k=TOP_K)
        second = make_retriever().retrieve(queries, top_k=TOP_K)
        for result, other in zip(first, second, strict=True):
            assert (result.hits, result.evidence) == (other.hits, other.evidence)

    @pytest.mark.parametrize("top_k", [1, 3])
    def test_top_k_cuts_the_same_ranking(
        self, make_retriever: MakeRetriever, queries: Sequence[str], top_k: int
    ) -> None:
        retriever = make_retriever()
        short = retriever.retrieve(queries, top_k=top_k)
        long = retriever.retrieve(queries, top_k=TOP_K)
        for few, many in zip(short, long, strict=True):
            assert [hit.chunk_id for hit in few.hits] == [hit.chunk_id for hit in many.hits[:top_k]]

    def test_top_k_beyond_the_corpus(
        self, make_retriever: MakeRetriever, documents: Sequence[Document], queries: Sequence[str]
    ) -> None:
        characters = sum(len(document.text) for document in documents)
        for result in make_retriever().retrieve(queries[:1], top_k=characters + 1):
            check_hits(result, documents)

    def test_hits_are_ranked_and_traceable(
        self, make_retriever: MakeRetriever, documents: Sequence[Document], queries: Sequence[str]
    ) -> None:
        for result in make_retriever().retrieve(queries, top_k=TOP_K):
            check_hits(result, documents)

    def test_results_are_json(self, make_retriever: MakeRetriever, queries: Sequence[str]) -> None:
        for result in make_retriever().retrieve(queries, top_k=TOP_K):
            plain = json.loads(json.dumps(result.to_dict(), allow_nan=False))
            for hit in plain["hits"]:
                assert all(isinstance(item["kind"], str) for item in hit["evidence"])

    @pytest.mark.parametrize("query", ["zzyzx qwfpgj", "¿?!", "谁写了这本书？", "why " * 2000, "\u202e\U0001f600"])
    def test_odd_queries_are_answered(
        self, make_retriever: MakeRetriever, documents: Sequence[Document], query: str
    ) -> None:
        (result,) = make_retriever().retrieve([query], top_k=TOP_K)
        assert result.query == query
        check_hits(result, documents)

    def test_no_queries_no_results(self, make_retriever: MakeRetriever) -> None:
        assert make_retriever().retrieve([], top_k=TOP_K) == []

    @pytest.mark.parametrize("blank", ["", " \t\n", "\u3000", "\u200b\ufeff"])
    def test_blank_query_is_refused_by_position(
        self, make_retriever: MakeRetriever, queries: Sequence[str], blank: str
    ) -> None:
        with pytest.raises(InputError, match=r"\b2\b"):
            make_retriever().retrieve([*queries[:2], blank], top_k=TOP_K)

    def test_a_bare_text_is_refused(self, make_retriever: MakeRetriever, queries: Sequence[str]) -> None:
        with pytest.raises(InputError):
            make_retriever().retrieve(queries[0], top_k=TOP_K)

    @pytest.mark.parametrize("top_k", [0, -1])
    def test_top_k_below_one_is_refused(
        self, make_retriever: MakeRetriever, queries: Sequence[str], top_k: int
    ) -> None:
        with pytest.raises(InputError, match="top_k"):
            make_retriever().retrieve(queries[:1], top_k=top_k)


def check_hits(result: RetrievalResult, documents: Sequence[Document]) -> None:
    """Scores are finite and fall, chunks do not repeat, and each can be found in its document."""
    by_id = {document.id: document for document in documents}
    scores = [hit.score for hit in result.hits]
    assert all(math.isfinite(score) for score in scores), scores
    assert scores == sorted(scores, reverse=True)
    chunks = [hit.chunk_id for hit in result.hits]
    assert len(set(chunks)) == len(chunks)
    for hit in result.hits:
        assert hit.document_ids[0] == hit.document_id
        assert hit.chunk_id.rpartition("-")[0] == hit.document_id
        assert hit.start < hit.end
        for document_id in hit.document_ids:
            document = by_id[document_id]
            assert document.text[hit.start : hit.end] == hit.text
            assert document.title == hit.title


def assert_same_ranking(one: RetrievalResult, other: RetrievalResult) -> None:
    """Equal scores by rank and equal chunks, but for the order of scores that rounding cannot tell apart."""
    scores = [hit.score for hit in one.hits]
    assert [hit.score for hit in other.hits] == pytest.approx(scores, rel=SCORE_TOLERANCE, abs=SCORE_TOLERANCE)
    places = {hit.chunk_id: place for place, hit in enumerate(other.hits)}
    for place, hit in enumerate(one.hits):
        there = places.get(hit.chunk_id, len(scores) - 1)
        assert scores[there] == pytest.approx(hit.score, rel=SCORE_TOLERANCE, abs=SCORE_TOLERANCE), (
            f"{hit.chunk_id} is at {place} in one and at {there} in the other ranking"
        )
