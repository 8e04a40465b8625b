"""Vectors of texts and triples that an index may hold already."""

from collections.abc import Sequence

import torch
from torch import Tensor

from qgrag.index.knowledge.build import KnowledgeGraph
from qgrag.retrieval.linking.link import Encode


class TextVectors:
    """Unit vectors of texts: looked up where they are stored, made where they are not, each text once.

    Args:
        encode: texts -> unit vectors, float32 [n, d].
        texts: those stored, without repeats.
        vectors: float32 [len(texts), d]; None, or no rows, where nothing is stored.
    """

    def __init__(self, encode: Encode, texts: Sequence[str] = (), vectors: Tensor | None = None) -> None:
        self._encode = encode
        self._vectors = vectors
        self._rows = {text: row for row, text in enumerate(texts)} if vectors is not None and len(vectors) else {}

    def __call__(self, texts: Sequence[str]) -> Tensor:
        """float32 [len(texts), d]; what is not stored is encoded in one call."""
        stored = torch.tensor([text in self._rows for text in texts], dtype=torch.bool)
        new = {text: row for row, text in enumerate(dict.fromkeys(t for t in texts if t not in self._rows))}
        made = self._encode(list(new))
        out = torch.empty(len(texts), made.shape[1])
        out[~stored] = made[[new[text] for text in texts if text in new]]
        if self._vectors is not None and self._rows:
            out[stored] = self._vectors[[self._rows[text] for text in texts if text in self._rows]]
        return out


def vectors_of_triples(graph: KnowledgeGraph, rows: Tensor, encode: Encode) -> Tensor:
    """Unit vectors of triples, float32 [R, d]: the graph's where it holds them, else encoded.

    Args:
        graph: whose triples they are.
        rows: int64 [R], triples; each once, so that none is encoded twice.
        encode: texts -> unit vectors.
    """
    if len(graph.triple_vectors):
        return graph.triple_vectors[rows]
    return encode(graph.triple_texts(rows.tolist()))
