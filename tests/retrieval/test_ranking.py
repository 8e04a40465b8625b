import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from qgrag.errors import ConfigError, InputError
from qgrag.graph.segments import pool_pairs, top_pairs
from qgrag.retrieval.base import check_queries, standardise, top_chunks
from qgrag.retrieval.registry import load_retriever
from qgrag.retrieval.steps.paired_dots import paired_dots

PAIRS = st.lists(
    st.tuples(st.integers(0, 3), st.integers(0, 6), st.sampled_from([-1.0, -0.5, 0.0, 0.25, 0.5, 1.0])), max_size=40
)


@settings(deadline=None, max_examples=150)
@given(PAIRS, st.sampled_from(["mean", "max", "sum", "top2"]), st.integers(1, 8))
def test_pooled_pairs_rank_as_a_dictionary_does(pairs, pooling, top_k):
    query, chunk, score = (
        torch.tensor([p[i] for p in pairs], dtype=t) for i, t in enumerate((torch.long, torch.long, torch.float))
    )
    chunks, scores = top_pairs(*pool_pairs(query, chunk, score, 7, pooling), 4, top_k)
    reduce = {"mean": lambda v: sum(v) / len(v), "max": max, "sum": sum, "top2": lambda v: sum(sorted(v)[-2:])}[pooling]
    for q in range(4):
        groups = {}
        for pq, pc, ps in pairs:
            if pq == q:
                groups.setdefault(pc, []).append(ps)
        expected = sorted(((-reduce(v), c) for c, v in groups.items()))[:top_k]
        found = [(c, s) for c, s in zip(chunks[q].tolist(), scores[q].tolist()) if c >= 0]
        assert [s for _, s in found] == pytest.approx([-s for s, _ in expected], abs=1e-6)
        assert {c for c, _ in found} <= groups.keys()
        assert len(found) == len(expected)


@pytest.mark.parametrize("count", [0, 1, 900, 60_000])
def test_paired_dots_in_pieces_equal_those_at_once(count):
    generator = torch.Generator().manual_seed(0)
    one, other = torch.randn(300, 500, generator=generator), torch.randn(2000, 500, generator=generator)
    i, j = (torch.randint(n, (count,), generator=generator) for n in (300, 2000))
    pieces = paired_dots(one, i, other, j, memory_mb=1)
    torch.testing.assert_close(pieces, (one @ other.T)[i, j], atol=1e-3, rtol=1e-4)


@settings(deadline=None, max_examples=150)
@given(st.lists(st.lists(st.sampled_from([-torch.inf, 0.0, 0.5, 1.0]), min_size=5, max_size=5), min_size=1, max_size=4))
def test_top_chunks_breaks_ties_by_number_and_marks_what_was_not_retrieved(rows):
    scores = torch.tensor(rows)
    for top_k in (1, 3, 5, 9):
        chunks, values = top_chunks(scores, top_k)
        for row, found, value in zip(rows, chunks.tolist(), values.tolist()):
            expected = sorted(range(5), key=lambda c: (-row[c], c))[:top_k]
            assert value == [row[c] for c in expected]
            assert found == [c if row[c] > -torch.inf else -1 for c in expected]


def test_standardised_rows_have_mean_zero_and_deviation_one_and_constant_rows_are_zero():
    out = standardise(torch.tensor([[1.0, 2.0, 3.0], [4.0, 4.0, 4.0]]))
    assert out[0].mean().item() == pytest.approx(0, abs=1e-6)
    assert out[0].std(unbiased=False).item() == pytest.approx(1)
    assert out[1].tolist() == [0, 0, 0]


@pytest.mark.parametrize(
    ("queries", "message"),
    [("one", "not one text"), (["a", " "], "query 1 is ' '"), (["\u200b"], "query 0 is"), ([3], "query 0 is 3")],
)
def test_unusable_queries_are_named(queries, message):
    with pytest.raises(InputError, match=message):
        check_queries(queries)


def test_registry_names_what_is_wrong(demo_index, tmp_path):
    with pytest.raises(ConfigError, match="did you mean 'hybrid'"):
        load_retriever(demo_index, "hibrid")
    with pytest.raises(ConfigError, match="'hop' is unknown; did you mean 'hops'"):
        load_retriever(demo_index, "qcg", hop=2)
    with pytest.raises(ConfigError, match="naive takes no parameters"):
        load_retriever(demo_index, "naive", nodes=3)
    file = tmp_path / "mine.yaml"
    file.write_text("retriever: qcg\nnodes: 0\n")
    with pytest.raises(ConfigError, match=r"mine\.yaml: .*nodes and neighbours must be at least 1"):
        load_retriever(demo_index, str(file))
    file.write_text("nodes: 3\n")
    with pytest.raises(ConfigError, match="lacks the key 'retriever'"):
        load_retriever(demo_index, str(file))
    file.write_text("retriever: qcg\nnodes: 7\n")
    assert load_retriever(demo_index, str(file)).config.nodes == 7


def test_hybrid_lies_between_its_parts(demo_index):
    query = ["Who founded the Curtis Institute?"]
    lexical = load_retriever(demo_index, "hybrid", lexical_weight=1000.0).retrieve(query)[0]
    dense = load_retriever(demo_index, "hybrid", lexical_weight=0.0).retrieve(query)[0]
    bm25 = load_retriever(demo_index, "bm25").retrieve(query)[0]
    naive = load_retriever(demo_index, "naive").retrieve(query)[0]
    assert lexical.hits[0].chunk_id == bm25.hits[0].chunk_id
    assert [hit.chunk_id for hit in dense.hits] == [hit.chunk_id for hit in naive.hits]
