"""Search for the nearest unit vectors: FAISS on the CPU, FAISS or plain torch on a GPU."""

import logging
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor

from qgrag.errors import ConfigError, IndexFormatError
from qgrag.index.storage import read_tensors, write_tensors

logger = logging.getLogger(__name__)

VECTORS = "vectors.safetensors"
FAISS_FILE = "vectors.faiss"


@dataclass(frozen=True)
class VectorConfig:
    """How vectors are searched.

    Args:
        kind: `auto` takes `flat` (exact) below `flat_below` vectors and `hnsw` from there on; `ivf` and `hnsw` are
            approximate.
        flat_below: number of vectors at which `auto` changes over.
        probes: lists visited by `ivf`, and candidates kept by `hnsw` in units of 8.
    """

    kind: Literal["auto", "flat", "ivf", "hnsw"] = "auto"
    flat_below: int = 100_000
    probes: int = 16

    def __post_init__(self) -> None:
        if self.flat_below < 0 or self.probes < 1:
            raise ConfigError(
                f"vectors: flat_below must be 0 or more and probes 1 or more, "
                f"not flat_below={self.flat_below}, probes={self.probes}"
            )

    def kind_for(self, count: int) -> str:
        if self.kind != "auto":
            return self.kind
        return "flat" if count < self.flat_below else "hnsw"


class VectorIndex:
    """Unit vectors with a search structure.

    Args:
        vectors: float32 [N, d], L2-normalised.
        structure: a FAISS index over them, or None for search in torch.
        device: where exact search runs.
        approximate: whether `structure` is worth saving because it takes long to build.
    """

    def __init__(
        self, vectors: Tensor, structure: Any | None = None, device: str = "cpu", approximate: bool = False
    ) -> None:
        self.vectors = vectors
        self.device = device
        self.approximate = approximate
        self._structure = structure
        self.backend = "torch" if structure is None else type(structure).__name__

    @classmethod
    def build(cls, vectors: Tensor, config: VectorConfig, device: str = "cpu") -> "VectorIndex":
        kind = config.kind_for(len(vectors))
        if kind == "flat" or len(vectors) == 0:
            return cls.exact(vectors, device)
        return cls(vectors, _approximate(vectors, kind, config.probes), device, approximate=True)

    @classmethod
    def exact(cls, vectors: Tensor, device: str = "cpu") -> "VectorIndex":
        """Exact search: FAISS's flat index on the CPU and, where FAISS is built for GPUs, on CUDA; torch elsewhere."""
        import faiss

        if device.startswith("cuda") and not hasattr(faiss, "StandardGpuResources"):
            return cls(vectors, None, device)
        flat: faiss.Index = faiss.IndexFlatIP(vectors.shape[1])
        if device.startswith("cuda"):
            flat = faiss.index_cpu_to_gpu(faiss.StandardGpuResources(), torch.device(device).index or 0, flat)
        flat.add(vectors.numpy())
        return cls(vectors, flat, device)

    def search(self, queries: Tensor, k: int) -> tuple[Tensor, Tensor]:
        """The k nearest of each query by inner product.

        Args:
            queries: float32 [B, d].
            k: neighbours wanted; at most N come back.

        Returns:
            scores float32 [B, k'] falling along each row and ids int64 [B, k'], k' = min(k, N). An approximate
            search that finds fewer fills up with id -1 and score -inf.
        """
        k = min(k, len(self.vectors))
        if k == 0:
            return torch.empty(len(queries), 0), torch.empty(len(queries), 0, dtype=torch.long)
        if self._structure is None:
            scores, ids = (queries.to(self.device) @ self._on_device().T).topk(k, dim=1)
            return scores.cpu(), ids.cpu()
        found_scores, found = self._structure.search(queries.cpu().numpy(), k)
        ids = torch.from_numpy(found)
        return torch.from_numpy(found_scores).masked_fill(ids < 0, -torch.inf), ids

    def _on_device(self) -> Tensor:
        if self.vectors.device != torch.device(self.device):
            self.vectors = self.vectors.to(self.device)
        return self.vectors

    def save(self, folder: Path) -> None:
        import faiss

        folder.mkdir(parents=True, exist_ok=True)
        write_tensors(folder / VECTORS, {"vectors": self.vectors.cpu()})
        if self.approximate and self._structure is not None:
            faiss.write_index(self._structure, str(folder / FAISS_FILE))

    @classmethod
    def load(cls, folder: Path, device: str = "cpu") -> "VectorIndex":
        """Load from `folder`; an approximate structure is used on the CPU, exact search on a GPU."""
        import faiss

        vectors = read_tensors(folder / VECTORS)["vectors"]
        path = folder / FAISS_FILE
        if device.startswith("cuda") or not path.is_file():
            return cls.exact(vectors, device)
        try:
            return cls(vectors, faiss.read_index(str(path)), device, approximate=True)
        except RuntimeError as error:
            raise IndexFormatError(f"{path}: FAISS cannot read it: {error}") from error


def _approximate(vectors: Tensor, kind: str, probes: int) -> Any:
    import faiss

    count, d = vectors.shape
    structure: Any
    if kind == "hnsw":
        structure = faiss.IndexHNSWFlat(d, 32, faiss.METRIC_INNER_PRODUCT)
        structure.hnsw.efConstruction = 80
        structure.hnsw.efSearch = 8 * probes
    else:
        lists = max(1, min(4 * int(count**0.5), count // 40))
        structure = faiss.IndexIVFFlat(faiss.IndexFlatIP(d), d, lists, faiss.METRIC_INNER_PRODUCT)
        structure.nprobe = min(probes, lists)
        structure.train(vectors.numpy())
    structure.add(vectors.numpy())
    return structure
