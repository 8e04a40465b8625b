import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from qgrag.evaluation.metrics import retrieval_metrics
from qgrag.training.pairs import TrainingPair
from qgrag.training.search_metrics import gold_ranks, search_metrics
from qgrag.training.search_set import search_set


@settings(deadline=None, max_examples=25)
@given(st.integers(1, 5), st.integers(3, 30), st.integers(0, 10**6))
def test_equal_those_of_the_evaluation(queries, passages, seed):
    g = torch.Generator().manual_seed(seed)
    q, d = torch.randn(queries, 4, generator=g).round(), torch.randn(passages, 4, generator=g).round()
    gold = [
        torch.randperm(passages, generator=g)[: int(torch.randint(1, 4, (1,), generator=g))] for _ in range(queries)
    ]
    query = torch.cat([torch.full((len(rows),), i) for i, rows in enumerate(gold)])
    values = search_metrics(gold_ranks(q, d, query, torch.cat(gold)), query, (1, 3, 10))
    order = (q @ d.T).argsort(dim=1, descending=True, stable=True)
    expected = [
        retrieval_metrics([[str(i)] for i in order[b].tolist()], {str(i) for i in gold[b].tolist()}, (1, 3, 10))
        for b in range(queries)
    ]
    for name, value in values.items():
        assert value == pytest.approx(sum(e[name] for e in expected) / queries, abs=1e-6), name


def test_search_set_holds_every_passage_once():
    val = [TrainingPair("q1", ("a", "b"), ("c",)), TrainingPair("q1", ("b",)), TrainingPair("q2", ("c",))]
    task = search_set(val, [TrainingPair("t", ("a",), ("d",))])
    assert list(task.queries) == ["q1", "q2"]
    assert list(task.passages) == ["a", "b", "c", "d"]
    assert list(zip(task.query.tolist(), task.passage.tolist(), strict=True)) == [(0, 0), (0, 1), (1, 2)]
