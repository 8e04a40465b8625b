"""Retrieval metrics against values computed by hand and against a plain reference."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torchmetrics.functional.retrieval import retrieval_recall, retrieval_reciprocal_rank

from qgrag.errors import InputError
from qgrag.evaluation.metrics import DEFAULT_KS, MEASURES, check_ks, metric_names, retrieval_metrics


def ranking(ids: str) -> list[tuple[str, ...]]:
    """`"a b|B c"`: three hits, the second of a document known under two ids."""
    return [tuple(hit.split("|")) for hit in ids.split()]


def test_values_by_hand() -> None:
    values = retrieval_metrics(ranking("x a y b z"), {"a", "b", "c"}, ks=[1, 2, 5])
    ideal = 1 + 1 / math.log2(3) + 1 / math.log2(4)
    assert values == pytest.approx(
        {
            "recall@1": 0, "recall@2": 1 / 3, "recall@5": 2 / 3,
            "all_evidence@1": 0, "all_evidence@2": 0, "all_evidence@5": 0,
            "mrr@1": 0, "mrr@2": 1 / 2, "mrr@5": 1 / 2,
            "ndcg@1": 0,
            "ndcg@2": (1 / math.log2(3)) / (1 + 1 / math.log2(3)),
            "ndcg@5": (1 / math.log2(3) + 1 / math.log2(5)) / ideal,
            "hit@1": 0, "hit@2": 1, "hit@5": 1,
            "precision@1": 0, "precision@2": 1 / 2, "precision@5": 2 / 5,
            "f1@1": 0, "f1@2": 2 * (1 / 2 * 1 / 3) / (1 / 2 + 1 / 3), "f1@5": 2 * (2 / 5 * 2 / 3) / (2 / 5 + 2 / 3),
        }
    )  # fmt: skip


def test_further_chunks_of_a_document_take_places_and_bring_nothing() -> None:
    values = retrieval_metrics(ranking("a a a b"), {"a", "b"}, ks=[3, 4])
    assert (values["recall@3"], values["all_evidence@3"], values["precision@3"]) == (0.5, 0, 1)
    assert (values["recall@4"], values["all_evidence@4"], values["precision@4"]) == (1, 1, 1)
    assert values["ndcg@4"] == pytest.approx((1 + 1 / math.log2(5)) / (1 + 1 / math.log2(3)))


def test_any_alias_of_a_document_counts_once() -> None:
    values = retrieval_metrics(ranking("x a|A a|A"), {"A"}, ks=[3])
    assert (values["recall@3"], values["mrr@3"], values["precision@3"]) == (1, 0.5, 0.5)


def test_one_hit_of_a_group_is_enough_and_its_further_hits_bring_nothing() -> None:
    groups = [("a", "b"), ("c",)]
    assert retrieval_metrics(ranking("b c"), groups, ks=[2])["all_evidence@2"] == 1
    found = retrieval_metrics(ranking("b a c"), groups, ks=[2, 3])
    assert (found["recall@2"], found["precision@2"], found["all_evidence@3"]) == (0.5, 1, 1)
    assert found == retrieval_metrics(ranking("a a c"), {"a", "c"}, ks=[2, 3])


def test_gold_that_was_not_retrieved_counts_in_the_denominator() -> None:
    values = retrieval_metrics(ranking("a"), {"a", "b", "c", "d"}, ks=[1, 10])
    assert values["recall@10"] == 0.25
    assert values["all_evidence@10"] == 0
    assert values["ndcg@10"] == pytest.approx(1 / (1 + 1 / math.log2(3) + 1 / 2 + 1 / math.log2(5)))


def test_a_short_ranking_leaves_missing_gold_missing() -> None:
    values = retrieval_metrics(ranking("x y"), {"a"}, ks=[5])
    assert set(values.values()) == {0.0}


def test_no_hit_at_all() -> None:
    assert set(retrieval_metrics([], {"a"}).values()) == {0.0}


def test_perfect_ranking() -> None:
    values = retrieval_metrics(ranking("b a"), {"a", "b"}, ks=[2])
    assert all(values[f"{measure}@2"] == 1 for measure in MEASURES)


def test_limits_of_the_library_that_the_scores_work_around() -> None:
    """If these change, the scores that `metrics.py` makes up may be simplified."""
    cosines = torch.tensor([-0.1, -0.2, -0.3])
    relevant = torch.tensor([True, False, True])
    assert retrieval_recall(cosines, relevant) == 0
    assert retrieval_reciprocal_rank(cosines, relevant) == 0
    assert retrieval_recall(torch.tensor([0.9]), torch.tensor([True])) == 1


def test_names_and_cut_offs() -> None:
    names = metric_names(DEFAULT_KS)
    assert list(retrieval_metrics(ranking("a"), {"a"})) == names
    assert names[:2] == ["recall@1", "recall@2"]
    assert {"recall@5", "all_evidence@8", "mrr@10", "ndcg@10", "hit@1"} <= set(names)
    assert check_ks([5, 1, 5]) == (1, 5)


@pytest.mark.parametrize("ks", [[], [0], [1, -1]])
def test_bad_cut_offs(ks: list[int]) -> None:
    with pytest.raises(InputError, match="cut-offs"):
        retrieval_metrics(ranking("a"), {"a"}, ks=ks)


def test_no_gold() -> None:
    with pytest.raises(InputError, match="without gold"):
        retrieval_metrics(ranking("a"), set())


def reference(hits: list[str], gold: set[str], k: int) -> dict[str, float]:
    found = set(hits[:k]) & gold
    first_places = [hits.index(document) + 1 for document in found]
    recall = len(found) / len(gold)
    precision = len(found) / len(set(hits[:k])) if hits else 0
    ideal = sum(1 / math.log2(1 + place) for place in range(1, min(k, len(gold)) + 1))
    return {
        "recall": recall,
        "all_evidence": float(gold <= set(hits[:k])),
        "mrr": 1 / min(first_places) if found else 0,
        "ndcg": sum(1 / math.log2(1 + place) for place in first_places) / ideal,
        "hit": float(bool(found)),
        "precision": precision,
        "f1": 2 * precision * recall / (precision + recall) if found else 0,
    }


@settings(max_examples=150, deadline=None)
@given(
    hits=st.lists(st.sampled_from("abcdefgh"), max_size=15),
    gold=st.sets(st.sampled_from("abcdefghij"), min_size=1),
    k=st.integers(1, 20),
)
def test_equals_the_reference(hits: list[str], gold: set[str], k: int) -> None:
    values = retrieval_metrics([(hit,) for hit in hits], gold, ks=[k])
    expected = {f"{name}@{k}": value for name, value in reference(hits, gold, k).items()}
    assert values == pytest.approx(expected, abs=1e-6)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.sampled_from("abcdefgh"), max_size=12), st.sets(st.sampled_from("abcdefgh"), min_size=1))
def test_what_grows_with_k(hits: list[str], gold: set[str]) -> None:
    values = retrieval_metrics([(hit,) for hit in hits], gold, ks=range(1, 13))
    for measure in ("recall", "all_evidence", "mrr", "hit"):
        series = [values[f"{measure}@{k}"] for k in range(1, 13)]
        assert series == sorted(series)
