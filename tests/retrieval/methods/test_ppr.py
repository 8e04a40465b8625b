"""Personalised PageRank over entities and passages, beside networkx and by the contract."""

import networkx as nx
import pytest
import torch

from qgrag.errors import ConfigError
from qgrag.index.reader import Index
from qgrag.retrieval.methods.ppr import PPRConfig, PPRRetriever
from tests.kit.retriever_contract import RetrieverContract

QUERIES = [
    "Who founded the conservatory that Sergei Prokofiev went to?",
    "In which city was Anton Karas born?",
    "zzyzx qwfpgj",
]


class TestContract(RetrieverContract):
    @pytest.fixture
    def make_retriever(self, demo_index):
        return lambda: PPRRetriever(demo_index)

    @pytest.fixture
    def documents(self, demo_documents):
        return demo_documents

    @pytest.fixture
    def queries(self):
        return QUERIES


def test_scores_are_those_of_networkx(demo_index: Index) -> None:
    retriever = PPRRetriever(demo_index, PPRConfig(title_weight=3.0))
    vectors = demo_index.embedder.encode_queries(QUERIES)
    ranking = retriever.rank(QUERIES, vectors, 5)
    graph, entities = demo_index.knowledge_graph, demo_index.knowledge_graph.num_entities
    plain = nx.Graph()
    plain.add_nodes_from(range(entities + len(demo_index.chunks)))
    rows = [
        *zip(*graph.mention_index.tolist(), graph.mention_count.tolist(), graph.mention_titled.tolist(), strict=True)
    ]
    edges = [(e, c + entities, min(n, 3) ** 0.5 * (3.0 if titled else 1.0)) for e, c, n, titled in rows]
    edges += [(h, t, min(w, 3)) for h, t, w in zip(*graph.edge_index.tolist(), graph.edge_weight.tolist(), strict=True)]
    for one, other, weight in edges:
        known = plain.get_edge_data(one, other, {"weight": 0.0})["weight"]
        plain.add_edge(one, other, weight=known + weight)
    links = retriever._linker.link_queries(QUERIES, demo_index.embedder.encode)
    for b, query in enumerate(QUERIES):
        named = retriever._restart([query], vectors[b : b + 1], *_rows(links[b]))
        restart: dict[int, float] = {}
        for node, weight in zip(named[0].values.tolist(), named[1].tolist(), strict=True):
            restart[node] = restart.get(node, 0.0) + weight
        assert sum(restart.values()) == pytest.approx(1)
        expected = nx.pagerank(plain, alpha=0.5, personalization=restart, tol=1e-12, max_iter=500)
        for chunk, score in zip(ranking.chunks[b].tolist(), ranking.scores[b].tolist(), strict=True):
            assert score == pytest.approx(expected[chunk + entities], rel=1e-3, abs=1e-6)


def _rows(links):
    from qgrag.graph import Ragged

    return Ragged.from_lists([[link.entity for link in links]]), torch.tensor([link.score for link in links])


@pytest.mark.parametrize("values", [{"damping": 1.0}, {"passage_weight": 1.5}, {"passages": 0}, {"title_weight": -1}])
def test_parameters_out_of_range_are_refused(values) -> None:
    with pytest.raises(ConfigError, match="ppr"):
        PPRConfig(**values)
