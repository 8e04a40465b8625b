"""The query-centric graph of some chunks, from nothing or from what an earlier one holds."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil

import pyarrow as pa
import torch
from torch import Tensor

from qgrag.corpus.records import Chunk, text_key
from qgrag.extraction.records import QuestionAnswer
from qgrag.graph import KNNGraph, append_knn, knn_graph, remove_knn
from qgrag.graph.segments import rank_within
from qgrag.index.lexical import LexicalConfig, LexicalIndex
from qgrag.index.query_graph import PAIRS_SCHEMA, QueryGraph, QueryGraphConfig, node_text
from qgrag.index.vectors import VectorConfig, VectorIndex

Encode = Callable[[Sequence[str], str], Tensor]


@dataclass(frozen=True)
class QueryGraphInputs:
    """What a graph is made of.

    Args:
        chunks: C chunks.
        passages: float32 [C, d], their unit vectors.
        pairs: for each chunk its question-answer pairs.
        known: similarities of an earlier build (`QueryGraph.similarities`), with the same node mode.
        previous: a graph built with the same node mode, neighbours and search, to be grown.
    """

    chunks: Sequence[Chunk]
    passages: Tensor
    pairs: Sequence[Sequence[QuestionAnswer]]
    known: Mapping[tuple[str, str], float] = field(default_factory=dict)
    previous: QueryGraph | None = None


@dataclass(frozen=True)
class _Pairs:
    """Every pair that has a node text, P of them in the order of the chunks; a chunk has each text once.

    Args:
        chunk: int64 [P].
        number: of the pair within its chunk.
        pairs: the pairs themselves.
        texts: what is embedded of each.
        keys: content key of each text.
    """

    chunk: Tensor
    number: list[int]
    pairs: list[QuestionAnswer]
    texts: list[str]
    keys: list[str]


def build_query_graph(
    inputs: QueryGraphInputs,
    config: QueryGraphConfig,
    lexical: LexicalConfig,
    search: VectorConfig,
    encode: Encode,
    device: str = "cpu",
) -> QueryGraph:
    """Build the graph, from nothing or from `inputs.previous`; both give the same graph.

    Args:
        inputs: the chunks and their pairs.
        config: parameters of the graph.
        lexical: parameters of BM25 over the nodes.
        search: how retrieval will search the nodes.
        encode: texts and a description to unit vectors.
        device: where the neighbours are computed.
    """
    pairs = _flatten(inputs.pairs, config.nodes)
    similarity = _similarities(pairs, inputs, encode)
    kept = keep_best(similarity, pairs.chunk, config.alpha).tolist()
    nodes = dict(sorted({key: text for key, text, keep in zip(pairs.keys, pairs.texts, kept) if keep}.items()))
    keys, texts = list(nodes), list(nodes.values())
    row_of = {key: row for row, key in enumerate(keys)}
    vectors = encode(texts, "Embedding question nodes")
    table = pa.table(
        {
            "chunk": pairs.chunk.tolist(),
            "number": pairs.number,
            "node": [row_of[key] if keep else -1 for key, keep in zip(pairs.keys, kept)],
            "similarity": similarity.numpy(),
            "question": [pair.question for pair in pairs.pairs],
            "answer": [pair.answer for pair in pairs.pairs],
            "sentence": [pair.sentence for pair in pairs.pairs],
        },
        schema=PAIRS_SCHEMA,
    )
    return QueryGraph(
        table,
        keys,
        VectorIndex.build(vectors, search, device),
        _neighbours(vectors.to(device), keys, config, inputs.previous),
        LexicalIndex.build(texts, lexical),
    )


def _flatten(pairs: Sequence[Sequence[QuestionAnswer]], nodes: str) -> _Pairs:
    owner, numbers, flat, texts = [], [], [], []
    for chunk, chunk_pairs in enumerate(pairs):
        first: dict[str, QuestionAnswer] = {}
        for pair in chunk_pairs:
            if text := node_text(pair, nodes):
                first.setdefault(text, pair)
        for number, (text, pair) in enumerate(first.items()):
            owner.append(chunk)
            numbers.append(number)
            flat.append(pair)
            texts.append(text)
    return _Pairs(torch.tensor(owner, dtype=torch.long), numbers, flat, texts, [text_key(text) for text in texts])


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


def _similarities(pairs: _Pairs, inputs: QueryGraphInputs, encode: Encode) -> Tensor:
    """Cosine of each pair's text and its chunk's passage, float32 [P]; those that are known are not computed."""
    passages = [text_key(chunk.passage) for chunk in inputs.chunks]
    out = torch.tensor(
        [inputs.known.get((passages[chunk], key), torch.nan) for chunk, key in zip(pairs.chunk.tolist(), pairs.keys)],
        dtype=torch.float32,
    )
    new = out.isnan().nonzero().flatten()
    if len(new):
        vectors = encode([pairs.texts[i] for i in new.tolist()], "Embedding question nodes")
        out[new] = (vectors * inputs.passages[pairs.chunk[new]]).sum(1)
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
