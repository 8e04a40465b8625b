"""Vectors of texts on disk, made once for an encoder."""

import logging
from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor

from qgrag.corpus.records import text_key
from qgrag.index.storage import read_tensors, write_tensors
from qgrag.models.embedder import Embedder

logger = logging.getLogger(__name__)


class VectorCache:
    """One safetensors file for each encoder and kind of text, in one folder.

    Args:
        folder: made if missing.
        embedder: makes what is not there yet.
    """

    def __init__(self, folder: str | Path, embedder: Embedder) -> None:
        self.folder, self.embedder = Path(folder), embedder

    def passages(self, texts: Sequence[str]) -> Tensor:
        """float32 [len(texts), d], in order."""
        return self._vectors(texts, "passages")

    def queries(self, texts: Sequence[str]) -> Tensor:
        """float32 [len(texts), d], in order."""
        return self._vectors(texts, "queries")

    def _vectors(self, texts: Sequence[str], kind: str) -> Tensor:
        path = self.folder / f"{kind}-{self.embedder.fingerprint}.safetensors"
        keys, vectors = _read(path, self.embedder.dimension)
        row_of = {key: row for row, key in enumerate(keys)}
        wanted = [text_key(text) for text in texts]
        missing = {key: text for key, text in zip(wanted, texts) if key not in row_of}
        if missing:
            logger.info("embedding %d of %d %s", len(missing), len(texts), kind)
            encode = self.embedder.encode if kind == "passages" else self.embedder.encode_queries
            vectors = torch.cat([vectors, encode(list(missing.values()))])
            row_of |= {key: len(row_of) + i for i, key in enumerate(missing)}
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
