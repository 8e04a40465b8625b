"""QCG-RAG's query-centric graph: question nodes, their nearest neighbours, and the chunks that they come from."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import pyarrow as pa
import torch
from torch import Tensor

from qgrag.corpus.records import Chunk, text_key
from qgrag.errors import ConfigError
from qgrag.extraction.records import QuestionAnswer
from qgrag.graph import KNNGraph, Ragged
from qgrag.index.lexical import LexicalIndex
from qgrag.index.storage import read_table, read_tensors, write_table, write_tensors
from qgrag.index.vectors import VectorIndex

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
        problems = self.out_of_range(chunks)
        if problems:
            return problems
        node, _ = self.membership
        orphans = self.size - len(torch.unique(node))
        if orphans:
            problems.append(f"query graph: {orphans} nodes belong to no chunk")
        if len(self.vectors.vectors) != self.size or len(self.neighbours.index) != self.size:
            problems.append(
                f"query graph: {self.size} nodes, but {len(self.vectors.vectors)} vectors and "
                f"{len(self.neighbours.index)} rows of neighbours"
            )
        if self.lexical.size != self.size:
            problems.append(f"query graph: {self.size} nodes, but BM25 knows {self.lexical.size}")
        return problems

    def out_of_range(self, chunks: int) -> list[str]:
        """Ids that lead nowhere, empty if there are none; quick enough to be asked whenever a graph is loaded."""
        ids = {
            "a pair comes from chunk": (torch.from_numpy(self.pairs["chunk"].to_numpy().copy()), 0, chunks),
            "a pair belongs to node": (torch.from_numpy(self.pairs["node"].to_numpy().copy()), -1, self.size),
            "an edge leads to node": (self.neighbours.index, -1, self.size),
        }
        return [
            f"query graph: {what} {int(values.min())} to {int(values.max())} of {bound}"
            for what, (values, least, bound) in ids.items()
            if values.numel() and not least <= int(values.min()) <= int(values.max()) < bound
        ]

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
