"""Doc2Query, LLM + graph, and re-ranking, each against what its definition gives by hand."""

import pytest
import torch

from qgrag.errors import ConfigError, ModelNotFoundError
from qgrag.models.cross_encoder import CrossEncoderConfig, LocalCrossEncoder
from qgrag.retrieval.methods.d2q import D2QConfig, D2QMinusRetriever, D2QRetriever
from qgrag.retrieval.methods.kg import KGConfig, KGRetriever
from qgrag.retrieval.methods.rerank import RerankConfig, RerankRetriever
from qgrag.retrieval.registry import load_retriever
from qgrag.retrieval.steps.protocols import QueryEntitySet
from tests.retrieval.cross_encoders import write_cross_encoder

QUERIES = ["Who composed the music of Solaris?", "In which city was Andrei Tarkovsky's teacher born?"]


class CountsLetters:
    """Scores a pair by how often the query's last letter before the mark is in the text."""

    name = "letters"

    def score(self, queries, texts):
        return torch.tensor([float(text.count(query[-2])) for query, text in zip(queries, texts, strict=True)])


@pytest.mark.parametrize(("retriever", "answers"), [(D2QRetriever, False), (D2QMinusRetriever, True)])
def test_d2q_is_the_cosine_of_the_expanded_chunk(demo_index, embedder, retriever, answers):
    rows = demo_index.query_graph.pairs.to_pylist()
    expanded = []
    for number, chunk in enumerate(demo_index.chunks):
        kept = [
            f"{row['question']} {row['answer']}" if answers else row["question"]
            for row in rows
            if row["chunk"] == number and row["question"] and (row["node"] >= 0 or retriever is D2QRetriever)
        ]
        expanded.append("\n".join([chunk.passage, *kept]))
    cosine = embedder.encode_queries(QUERIES) @ embedder.encode(expanded).T
    found = retriever(demo_index, D2QConfig(answers)).retrieve(QUERIES, top_k=3)
    for result, row in zip(found, cosine, strict=True):
        assert [hit.score for hit in result.hits] == pytest.approx(row.topk(3).values.tolist(), abs=1e-4)
        assert [hit.chunk_id for hit in result.hits] == [demo_index.chunks[i].id for i in row.topk(3).indices.tolist()]


def test_alpha_leaves_d2q_minus_fewer_questions(demo_index):
    every, kept = D2QRetriever(demo_index), D2QMinusRetriever(demo_index)
    sizes = [(len(a), len(b)) for a, b in zip(every._questions, kept._questions, strict=True)]
    assert all(b <= a for a, b in sizes)
    assert sum(b for _, b in sizes) < sum(a for a, _ in sizes)


def test_reranking_orders_the_first_chunks_by_the_scorer_alone(demo_index):
    retriever = RerankRetriever(demo_index, RerankConfig("bm25", depth=7), scorer=CountsLetters())
    first = load_retriever(demo_index, "bm25").retrieve(QUERIES, top_k=7)
    for query, result, before in zip(QUERIES, retriever.retrieve(QUERIES, top_k=7), first, strict=True):
        passages = {chunk.id: chunk.passage for chunk in demo_index.chunks}
        counts = {hit.chunk_id: passages[hit.chunk_id].count(query[-2]) for hit in before.hits}
        assert {hit.chunk_id: hit.score for hit in result.hits} == counts
        for hit in result.hits:
            item = hit.evidence[0]
            assert (item.kind, item.first) == ("rerank", "bm25")
            assert before.hits[item.rank - 1].chunk_id == hit.chunk_id


def test_reranking_the_graph_keeps_its_evidence(demo_index):
    (result,) = RerankRetriever(demo_index, RerankConfig("kg"), scorer=CountsLetters()).retrieve(QUERIES[:1])
    assert [item.kind for item in result.hits[0].evidence][:2] == ["rerank", "triple"]
    assert result.evidence.triples


def test_graph_baseline_ranks_chunks_by_their_best_triple(demo_index, embedder):
    retriever = KGRetriever(
        demo_index, KGConfig(triples=5), entities=lambda _: [QueryEntitySet(("Solaris (1972 film)",), ())]
    )
    (result,) = retriever.retrieve(QUERIES[:1], top_k=5)
    triples = result.evidence.triples
    assert 0 < len(triples) <= 5
    texts = [f"{t.head} {t.relation} {t.tail}" for t in triples]
    cosine = (embedder.encode_queries(texts) @ embedder.encode_queries(QUERIES[:1])[0]).tolist()
    assert [t.similarity for t in triples] == pytest.approx(cosine, abs=1e-4)
    assert cosine == sorted(cosine, reverse=True)
    best: dict[str, float] = {}
    for triple in triples:
        for chunk in triple.chunks:
            best[chunk] = max(best.get(chunk, -1.0), triple.similarity)
    assert {hit.chunk_id: hit.score for hit in result.hits} == pytest.approx(best, abs=1e-6)


def test_graph_baseline_says_when_it_fell_back(demo_index):
    (result,) = KGRetriever(demo_index).retrieve(["zzyzx qwfpgj"])
    assert "dense retrieval" in result.evidence.fallback
    assert result.hits


def test_cross_encoder_reads_every_window_of_a_long_text(tmp_path):
    folder = str(write_cross_encoder(tmp_path / "ce"))
    whole = LocalCrossEncoder(CrossEncoderConfig(folder, max_tokens=40, query_tokens=8))
    cut = LocalCrossEncoder(CrossEncoderConfig(folder, max_tokens=40, query_tokens=8, window="truncate"))
    parts = ["a b c d e f g h i j k l m n o p q r s t u v w x y z", "7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7"]
    query = ["w h o"]
    long = whole.score(query, [" ".join(parts)])
    assert long >= cut.score(query, [" ".join(parts)])
    assert whole.score(query * 2, parts).shape == (2,)
    together = whole.score(["w h o", "w"], parts)
    assert together.tolist() == pytest.approx(
        [whole.score([q], [t]).item() for q, t in zip(["w h o", "w"], parts)], abs=1e-5
    )
    assert whole.score([], []).shape == (0,)


def test_mistakes_in_the_cross_encoder_are_named(tmp_path, demo_index):
    with pytest.raises(ModelNotFoundError, match="BAAI/bge-reranker-large"):
        load_retriever(demo_index, "rerank")
    with pytest.raises(ConfigError, match="may not be the re-ranker"):
        load_retriever(demo_index, "rerank", first="rerank")
    with pytest.raises(ConfigError, match="max_tokens"):
        CrossEncoderConfig("x", max_tokens=20, query_tokens=16)
    three = LocalCrossEncoder(CrossEncoderConfig(str(write_cross_encoder(tmp_path / "three", labels=3))))
    with pytest.raises(ConfigError, match="3 labels"):
        three.score(["a"], ["b"])
