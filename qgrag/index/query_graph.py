"""QCG-RAG's query-centric graph: question nodes, their nearest neighbours, and the chunks that they come from."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import pyarrow as pa
import torch
from torch import Tensor

from qgrag.corpus.records import Chunk, text_key
from qgrag.errors import ConfigError
from qgrag.extraction.records import QuestionAnswer
from qgrag.graph import KNNGraph, Ragged, append_knn, knn_graph, remove_knn
from qgrag.graph.segments import rank_within
from qgrag.index.lexical import LexicalConfig, LexicalIndex
from qgrag.index.storage import read_table, read_tensors, write_table, write_tensors
from qgrag.index.vectors import VectorConfig, VectorIndex

if TYPE_CHECKING:
    from torch_geometric.data import HeteroData

PAIRS_SCHEMA = pa.schema(
    [
        ("chunk", pa.int32()),
        ("number", pa.int32()),
        ("node", pa.int32()),
        ("similarity", pa.float32()),
        ("question", pa.string()),
        ("answer", pa.string()),
        ("sentence", pa.string()),
    ]
)


@dataclass(frozen=True)
class QueryGraphConfig:
    """The query-centric graph of QCG-RAG (section 3.3 and appendix B.3).

    Args:
        pairs: M, question-answer pairs made of a chunk, at most.
        sentences: `all` adds the sentences themselves, and in chats whole turns and three turns in a row, as nodes
            beside the pairs; `fallback`, the paper's form, takes them only where a chunk gives no pair.
        alpha: share of a chunk's pairs that Doc2Query-- keeps, best first; at least one stays.
        neighbours: edges from a node to its most similar others that are stored; retrieval uses the first k of them.
        nodes: what is embedded of a pair. `query+answer` is the paper's; the others are its ablation (figure 4).
        search: how neighbours are found: exactly, or by FAISS.
        generator: who makes the pairs: `local` rules on spaCy's parse, or a language model (`llm`).
    """

    pairs: int = 20
    sentences: Literal["all", "fallback"] = "all"
    alpha: float = 0.8
    neighbours: int = 5
    nodes: Literal["query+answer", "query", "answer", "sentence"] = "query+answer"
    search: Literal["exact", "ivf", "hnsw"] = "exact"
    generator: Literal["local", "llm"] = "local"

    def __post_init__(self) -> None:
        if self.pairs < 1 or self.neighbours < 1:
            raise ConfigError(
                f"query_graph: pairs and neighbours must be at least 1, not {self.pairs} and {self.neighbours}"
            )
        if not 0 < self.alpha <= 1:
            raise ConfigError(f"query_graph.alpha must be above 0 and at most 1, not {self.alpha}")


def node_text(pair: QuestionAnswer, nodes: str) -> str:
    """The text that stands for a pair in the graph; empty where the mode has none for it."""
    if nodes == "sentence" or not pair.question:
        return pair.sentence
    if nodes == "query":
        return pair.question
    if nodes == "answer":
        return pair.answer
    return f"{pair.question} {pair.answer}"


@dataclass(frozen=True)
class QueryGraph:
    """Nodes are distinct node texts, sorted by content key; a text that several chunks gave is one node.

    Args:
        pairs: table of `PAIRS_SCHEMA`, ordered by chunk and number; `node` is -1 for a pair that was filtered out.
        keys: content key of each node's text.
        vectors: float32 [N, d] of the node texts.
        neighbours: E_intra, int64 [N, k] padded with -1, and the similarities float32 [N, k].
        lexical: BM25 over the node texts.
    """

    pairs: pa.Table
    keys: list[str]
    vectors: VectorIndex
    neighbours: KNNGraph
    lexical: LexicalIndex

    @property
    def size(self) -> int:
        return len(self.keys)

    @cached_property
    def membership(self) -> tuple[Tensor, Tensor]:
        """E_inter as int64 (node [E], chunk [E]), each edge once, sorted by node, then chunk."""
        node = torch.from_numpy(self.pairs["node"].to_numpy().copy()).long()
        chunk = torch.from_numpy(self.pairs["chunk"].to_numpy().copy()).long()
        kept = node >= 0
        edges = torch.unique(torch.stack([node[kept], chunk[kept]]), dim=1)
        return edges[0], edges[1]

    @cached_property
    def chunks_of(self) -> Ragged:
        """E_inter by node: the chunks of each of the N nodes."""
        node, chunk = self.membership
        return Ragged.from_batch(chunk, node, self.size)

    @cached_property
    def first_pair(self) -> Tensor:
        """Row in `pairs` of the first pair of each node, int64 [N]: what a node is shown as."""
        node = torch.from_numpy(self.pairs["node"].to_numpy().copy()).long()
        rows = torch.arange(len(node))
        kept = node >= 0
        first = torch.full((self.size,), len(node), dtype=torch.long)
        return first.scatter_reduce_(0, node[kept], rows[kept], "amin")

    def to_pyg(self, chunks: int) -> "HeteroData":
        """The two-layer graph: `query` nodes with x, edges `similar` and `from`, and `chunk` nodes."""
        from torch_geometric.data import HeteroData

        data = HeteroData()
        data["query"].x = self.vectors.vectors
        data["chunk"].num_nodes = chunks
        index, score = self.neighbours.index, self.neighbours.score
        present = index >= 0
        source = torch.arange(self.size).unsqueeze(1).expand_as(index)
        data["query", "similar", "query"].edge_index = torch.stack([source[present], index[present]])
        data["query", "similar", "query"].edge_attr = score[present]
        data["query", "from", "chunk"].edge_index = torch.stack(self.membership)
        return data

    def check(self, chunks: int) -> list[str]:
        """What is wrong with the graph, empty if nothing: orphan nodes, edges to nowhere, vectors not unit."""
        problems = []
        node, chunk = self.membership
        if len(chunk) and int(chunk.max()) >= chunks:
            problems.append(f"query graph: a node belongs to chunk {int(chunk.max())} of {chunks}")
        orphans = self.size - len(torch.unique(node))
        if orphans:
            problems.append(f"query graph: {orphans} nodes belong to no chunk")
        if len(self.vectors.vectors) != self.size or len(self.neighbours.index) != self.size:
            problems.append(
                f"query graph: {self.size} nodes, but {len(self.vectors.vectors)} vectors and "
                f"{len(self.neighbours.index)} rows of neighbours"
            )
        elif self.size and int(self.neighbours.index.max()) >= self.size:
            problems.append("query graph: an edge leads to a node that is not there")
        if self.lexical.size != self.size:
            problems.append(f"query graph: {self.size} nodes, but BM25 knows {self.lexical.size}")
        return problems

    def save(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        columns = {name: self.pairs[name] for name in PAIRS_SCHEMA.names}
        write_table(folder / "pairs.parquet", columns, PAIRS_SCHEMA)
        write_table(folder / "nodes.parquet", {"key": self.keys}, pa.schema([("key", pa.string())]))
        write_tensors(
            folder / "neighbours.safetensors",
            {"index": self.neighbours.index, "score": self.neighbours.score},
        )
        self.vectors.save(folder)
        self.lexical.save(folder / "lexical")

    @classmethod
    def load(cls, folder: Path, device: str = "cpu") -> "QueryGraph":
        tensors = read_tensors(folder / "neighbours.safetensors")
        return cls(
            read_table(folder / "pairs.parquet"),
            read_table(folder / "nodes.parquet")["key"].to_pylist(),
            VectorIndex.load(folder, device),
            KNNGraph(tensors["index"], tensors["score"]),
            LexicalIndex.load(folder / "lexical"),
        )

    def similarities(self, chunks: Sequence[Chunk], nodes: str) -> dict[tuple[str, str], float]:
        """Known sim(q (+) a, chunk) by (key of the passage, key of the node text), for the next build."""
        passage = [text_key(chunk.passage) for chunk in chunks]
        known = {}
        for row in self.pairs.select(["chunk", "similarity", "question", "answer", "sentence"]).to_pylist():
            pair = QuestionAnswer(row["question"], row["answer"], row["sentence"])
            known[passage[row["chunk"]], text_key(node_text(pair, nodes))] = row["similarity"]
        return known


def build_query_graph(
    chunks: Sequence[Chunk],
    passages: Tensor,
    pairs: Sequence[Sequence[QuestionAnswer]],
    config: QueryGraphConfig,
    lexical: LexicalConfig,
    search: VectorConfig,
    encode: Callable[[Sequence[str], str], Tensor],
    *,
    known: Mapping[tuple[str, str], float],
    previous: QueryGraph | None,
    device: str = "cpu",
) -> QueryGraph:
    """Build the graph of `chunks`, from nothing or from what an earlier one holds; both give the same graph.

    Args:
        chunks: C chunks.
        passages: float32 [C, d], their unit vectors.
        pairs: for each chunk its question-answer pairs.
        config: parameters of the graph.
        lexical: parameters of BM25 over the nodes.
        search: how retrieval will search the nodes.
        encode: texts and a description to unit vectors.
        known: similarities of an earlier build (`QueryGraph.similarities`).
        previous: a graph built with the same node mode, neighbours and search.
        device: where the neighbours are computed.
    """
    owner, numbers, flat, texts = [], [], [], []
    for i, chunk_pairs in enumerate(pairs):
        seen = set()
        for pair in chunk_pairs:
            text = node_text(pair, config.nodes)
            if text and text not in seen:
                seen.add(text)
                owner.append(i)
                numbers.append(len(seen) - 1)
                flat.append(pair)
                texts.append(text)
    keys = [text_key(text) for text in texts]
    chunk = torch.tensor(owner, dtype=torch.long)
    similarity = _similarities(chunks, passages, chunk, texts, keys, known, encode)
    kept = keep_best(similarity, chunk, config.alpha)

    node_texts = dict(sorted({keys[i]: texts[i] for i in kept.nonzero().flatten().tolist()}.items()))
    row_of = {key: row for row, key in enumerate(node_texts)}
    vectors = encode(list(node_texts.values()), "Embedding question nodes")
    table = pa.table(
        {
            "chunk": owner,
            "number": numbers,
            "node": [row_of[keys[i]] if keep else -1 for i, keep in enumerate(kept.tolist())],
            "similarity": similarity.numpy(),
            "question": [pair.question for pair in flat],
            "answer": [pair.answer for pair in flat],
            "sentence": [pair.sentence for pair in flat],
        },
        schema=PAIRS_SCHEMA,
    )
    return QueryGraph(
        table,
        list(node_texts),
        VectorIndex.build(vectors, search, device),
        _neighbours(vectors.to(device), list(node_texts), config, previous),
        LexicalIndex.build(list(node_texts.values()), lexical),
    )


def keep_best(similarity: Tensor, chunk: Tensor, alpha: float) -> Tensor:
    """Doc2Query--: the best alpha of each chunk's pairs (QCG-RAG, section 3.3, step 2).

    Args:
        similarity: float32 [P], s_i^j of each pair with its chunk.
        chunk: int64 [P], the chunk of each pair.
        alpha: share kept, rounded up, so that each chunk keeps at least one.

    Returns:
        bool [P]; among equal similarities the earlier pair stays.
    """
    if len(chunk) == 0:
        return torch.zeros(0, dtype=torch.bool)
    count = torch.bincount(chunk)
    limit = torch.tensor([ceil(round(alpha * n, 6)) for n in range(int(count.max()) + 1)])
    return rank_within(chunk, similarity, len(count)) < limit[count[chunk]]


def _similarities(
    chunks: Sequence[Chunk],
    passages: Tensor,
    chunk: Tensor,
    texts: Sequence[str],
    keys: Sequence[str],
    known: Mapping[tuple[str, str], float],
    encode: Callable[[Sequence[str], str], Tensor],
) -> Tensor:
    passage_keys = [text_key(c.passage) for c in chunks]
    out = torch.tensor(
        [known.get((passage_keys[c], key), torch.nan) for c, key in zip(chunk.tolist(), keys)],
        dtype=torch.float32,
    )
    new = out.isnan().nonzero().flatten()
    if len(new):
        vectors = encode([texts[i] for i in new.tolist()], "Embedding question nodes")
        out[new] = (vectors * passages[chunk[new]]).sum(1)
    return out


def _neighbours(vectors: Tensor, keys: list[str], config: QueryGraphConfig, previous: QueryGraph | None) -> KNNGraph:
    if previous is None or config.search != "exact":
        return knn_graph(vectors, config.neighbours, method=config.search)
    row_of = {key: row for row, key in enumerate(keys)}
    moved = torch.tensor([row_of.get(key, -1) for key in previous.keys], dtype=torch.long)
    stay = moved[moved >= 0]
    new = torch.ones(len(keys), dtype=torch.bool)
    new[stay] = False
    k = config.neighbours
    graph = remove_knn(previous.neighbours, vectors[stay], moved >= 0, k)
    graph = append_knn(graph, vectors[stay], vectors[new], k)
    return _renumber(graph, torch.cat([stay, new.nonzero().flatten()]))


def _renumber(graph: KNNGraph, order: Tensor) -> KNNGraph:
    """The same graph with node i called order[i]; equal scores in a row go by the new number."""
    index = torch.where(graph.index >= 0, order[graph.index.clamp(min=0)], -1)
    by_id = index.argsort(dim=1)
    by_score = graph.score.gather(1, by_id).argsort(dim=1, descending=True, stable=True)
    ranked = by_id.gather(1, by_score)
    out = KNNGraph(torch.empty_like(index), torch.empty_like(graph.score))
    out.index[order] = index.gather(1, ranked)
    out.score[order] = graph.score.gather(1, ranked)
    return out
