import pytest
import torch

from benchmarks.qcg_networkx import NetworkxRetriever, to_networkx
from qgrag.errors import ConfigError
from qgrag.index.query_graph_build import keep_best
from qgrag.retrieval.methods.qcg import QCGConfig, QCGRetriever
from qgrag.retrieval.registry import load_retriever

QUERIES = [
    "Who composed the music of The Third Man?",
    "Where was the director of Solaris born?",
    "Which institute did Leonard Bernstein attend?",
    "What did Fritz Lang direct?",
]


@pytest.fixture(scope="module")
def vectors(demo_index):
    return demo_index.embedder.encode_queries(QUERIES)


@pytest.mark.parametrize("aggregation", ["mean", "max", "sum", "top2"])
@pytest.mark.parametrize(
    ("hops", "neighbours", "nodes", "threshold"), [(0, 3, 15, 1.0), (1, 2, 10, 1.5), (2, 3, 4, 1.2)]
)
def test_batch_ranks_as_networkx_does_query_by_query(
    demo_index, vectors, aggregation, hops, neighbours, nodes, threshold
):
    config = QCGConfig(nodes, neighbours, hops, threshold, aggregation, 0.0, 0.0)
    ranking = QCGRetriever(demo_index, config).rank(QUERIES, vectors, 6)
    peer = NetworkxRetriever(to_networkx(demo_index.query_graph), config)
    ours = [[chunk for chunk in row if chunk >= 0] for row in ranking.chunks.tolist()]
    assert ours == peer.retrieve(vectors.numpy(), 6)


def test_evidence_names_the_nodes_that_brought_a_chunk(demo_index, vectors):
    retriever = QCGRetriever(demo_index, QCGConfig(aggregation="mean", nodes=10))
    for result in retriever.retrieve(QUERIES, top_k=3):
        for hit in result.hits:
            scores = [item.score for item in hit.evidence]
            assert hit.score == pytest.approx(sum(scores) / len(scores), abs=1e-5)
            assert all(item.kind == "question node" for item in hit.evidence)
            assert all(item.hop in (0, 1) for item in hit.evidence)
            document, position, number = hit.evidence[0].id.rsplit("-", 2)
            assert document
            assert position.isdigit()
            assert number.isdigit()


def test_threshold_that_nothing_reaches_gives_no_hit(demo_index):
    (result,) = load_retriever(demo_index, "qcg", threshold=2.0).retrieve(["unheard of"])
    assert result.hits == ()


def test_more_edges_than_stored_is_refused(demo_index):
    with pytest.raises(ConfigError, match=r"qcg\.neighbours is 50, but the index stores 5"):
        load_retriever(demo_index, "qcg", neighbours=50)


def test_keep_best_keeps_the_share_of_each_chunk_and_at_least_one():
    similarity = torch.tensor([0.1, 0.9, 0.5, 0.5, 0.2, 0.7])
    chunk = torch.tensor([0, 0, 0, 0, 0, 1])
    assert keep_best(similarity, chunk, 0.8).tolist() == [False, True, True, True, True, True]
    assert keep_best(similarity, chunk, 0.4).tolist() == [False, True, True, False, False, True]
    assert keep_best(similarity, chunk, 0.01).tolist() == [False, True, False, False, False, True]
    assert keep_best(similarity, chunk, 1.0).all()
    assert keep_best(torch.empty(0), torch.empty(0, dtype=torch.long), 0.5).shape == (0,)


def test_lexical_weights_add_standardised_bm25_of_nodes_and_chunks(demo_index, vectors):
    graph = demo_index.query_graph
    config = QCGConfig(node_lexical_weight=0.5, chunk_lexical_weight=2.0, hops=0, nodes=40)
    found = QCGRetriever(demo_index, config).find_nodes(QUERIES, vectors)

    def z(scores):
        return (scores - scores.mean(1, keepdim=True)) / scores.std(1, keepdim=True, unbiased=False)

    cosine = z(vectors @ graph.vectors.vectors.T)
    of_node, of_chunk = z(graph.lexical.scores(QUERIES)), z(demo_index.lexical.scores(QUERIES))
    chunk, ptr = graph.chunks_of.values, graph.chunks_of.ptr
    for query, node, score in zip(found.query.tolist(), found.node.tolist(), found.score.tolist()):
        best = of_chunk[query, chunk[ptr[node] : ptr[node + 1]]].max()
        assert score == pytest.approx((cosine[query, node] + 0.5 * of_node[query, node] + 2 * best).item(), abs=1e-4)


def test_results_do_not_depend_on_how_many_queries_are_scored_together(demo_index, vectors, monkeypatch):
    retriever = QCGRetriever(demo_index)
    together = retriever.find_nodes(QUERIES, vectors)
    monkeypatch.setattr("qgrag.retrieval.methods.qcg.SCORE_BYTES", 4)
    apart = retriever.find_nodes(QUERIES, vectors)
    assert torch.equal(together.query, apart.query)
    assert torch.equal(together.node, apart.node)
    torch.testing.assert_close(together.score, apart.score, atol=1e-4, rtol=0)
