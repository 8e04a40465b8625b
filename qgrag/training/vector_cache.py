"""Vectors of queries and triples on disk, made once for an encoder; a stopped run keeps what it had."""

import logging
from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor

from qgrag.corpus.records import text_key
from qgrag.index.storage import read_tensors, write_tensors
from qgrag.models.embedder import Embedder

BLOCK = 8192
logger = logging.getLogger(__name__)


class VectorCache:
    """One safetensors file for each encoder, in one folder. Texts are encoded as queries, as the retriever encodes
    queries and triples.

    Args:
        folder: made if missing.
        embedder: makes what is not there yet.
    """

    def __init__(self, folder: str | Path, embedder: Embedder) -> None:
        self.path = Path(folder) / f"queries-{embedder.fingerprint}.safetensors"
        self.embedder = embedder

    def __call__(self, texts: Sequence[str]) -> Tensor:
        """float32 [len(texts), d], in order."""
        keys, vectors = _read(self.path, self.embedder.dimension)
        row_of = {key: row for row, key in enumerate(keys)}
        wanted = [text_key(text) for text in texts]
        missing = {key: text for key, text in zip(wanted, texts) if key not in row_of}
        if missing:
            logger.info("embedding %d of %d texts", len(missing), len(texts))
            new = list(missing)
            for start in range(0, len(new), BLOCK):
                block = new[start : start + BLOCK]
                vectors = torch.cat([vectors, self.embedder.encode_queries([missing[key] for key in block])])
                row_of |= {key: len(row_of) + i for i, key in enumerate(block)}
                _write(self.path, list(row_of), vectors)
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
