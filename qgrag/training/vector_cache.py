"""Vectors of queries and triples on disk, made once for an encoder; a stopped run keeps what it had."""

import logging
from collections.abc import Callable, Sequence
from pathlib import Path

import torch
from torch import Tensor

from qgrag.corpus.records import text_key
from qgrag.index.storage import read_tensors, write_tensors
from qgrag.models.embedder import Embedder

BLOCK = 8192
logger = logging.getLogger(__name__)


class VectorCache:
    """What an embedder makes, kept in one folder: a safetensors file for its queries and one for its passages.

    Args:
        folder: made if missing.
        embedder: makes what is not there yet.
    """

    def __init__(self, folder: str | Path, embedder: Embedder) -> None:
        self.folder = Path(folder)
        self.embedder = embedder

    def encode(self, texts: Sequence[str]) -> Tensor:
        """Vectors of passages, names and triples, float32 [len(texts), d], in order."""
        return self._cached("passages", self.embedder.encode, texts)

    def encode_queries(self, queries: Sequence[str]) -> Tensor:
        """Vectors of queries, float32 [len(queries), d], in order."""
        return self._cached("queries", self.embedder.encode_queries, queries)

    def _cached(self, kind: str, encode: Callable[[Sequence[str]], Tensor], texts: Sequence[str]) -> Tensor:
        path = self.folder / f"{kind}-{self.embedder.fingerprint}.safetensors"
        keys, vectors = _read(path, self.embedder.dimension)
        row_of = {key: row for row, key in enumerate(keys)}
        wanted = [text_key(text) for text in texts]
        missing = {key: text for key, text in zip(wanted, texts) if key not in row_of}
        if missing:
            logger.info("embedding %d of %d texts", len(missing), len(texts))
            new = list(missing)
            for start in range(0, len(new), BLOCK):
                block = new[start : start + BLOCK]
                vectors = torch.cat([vectors, encode([missing[key] for key in block])])
                row_of |= {key: len(row_of) + i for i, key in enumerate(block)}
                _write(path, list(row_of), vectors)
        return vectors[torch.tensor([row_of[key] for key in wanted], dtype=torch.long)]


def _read(path: Path, dimension: int) -> tuple[list[str], Tensor]:
    if not path.is_file():
        return [], torch.empty(0, dimension)
    tensors = read_tensors(path)
    return [bytes(key).hex() for key in tensors["keys"].numpy()], tensors["vectors"]


def _write(path: Path, keys: list[str], vectors: Tensor) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    packed = torch.frombuffer(bytearray.fromhex("".join(keys)), dtype=torch.uint8).view(len(keys), -1)
    write_tensors(path, {"keys": packed, "vectors": vectors})
