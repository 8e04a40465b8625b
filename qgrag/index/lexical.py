"""BM25 over chunks or query nodes: weights from bm25s, scoring of a batch of queries in torch."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from qgrag.errors import ConfigError, IndexFormatError
from qgrag.graph import Ragged
from qgrag.graph.ragged import ragged_slots
from qgrag.index.storage import read_json, read_tensors, write_json, write_tensors
from qgrag.index.terms import TOKENISER, terms


@dataclass(frozen=True)
class LexicalConfig:
    """BM25 in Lucene's form.

    Args:
        k1: saturation of term frequency, 0 or more.
        b: strength of length normalisation, 0 to 1.
    """

    k1: float = 1.5
    b: float = 0.75

    def __post_init__(self) -> None:
        if self.k1 < 0 or not 0 <= self.b <= 1:
            raise ConfigError(f"lexical: k1 must be 0 or more and b from 0 to 1, not k1={self.k1}, b={self.b}")


@dataclass(frozen=True, slots=True)
class LexicalIndex:
    """Term-major sparse matrix of BM25 weights.

    Args:
        vocabulary: term -> row.
        weight: float32 [Z], BM25 weight of each posting.
        text: int32 [Z], the text of each posting.
        ptr: int64 [V + 1], postings of term t are ptr[t]:ptr[t + 1].
        size: number of texts N.
        tokeniser: version of `terms` that made the postings; queries are cut by the same one.
    """

    vocabulary: dict[str, int]
    weight: Tensor
    text: Tensor
    ptr: Tensor
    size: int
    tokeniser: int = TOKENISER

    @classmethod
    def build(cls, texts: Sequence[str], config: LexicalConfig) -> "LexicalIndex":
        tokenised = [terms(text) for text in texts]
        vocabulary = {term: i for i, term in enumerate(sorted({t for ts in tokenised for t in ts}))}
        if not vocabulary:
            empty = torch.empty(0)
            return cls({}, empty, empty.int(), torch.zeros(1, dtype=torch.long), len(texts))
        import bm25s

        logging.getLogger("bm25s").setLevel(logging.WARNING)
        model = bm25s.BM25(method="lucene", k1=config.k1, b=config.b)
        ids = [np.array([vocabulary[t] for t in ts], dtype=np.int32) for ts in tokenised]
        model.index((ids, vocabulary), create_empty_token=False, show_progress=False)
        parts = model.scores
        return cls(
            vocabulary,
            torch.from_numpy(np.asarray(parts["data"], dtype=np.float32)),
            torch.from_numpy(np.asarray(parts["indices"], dtype=np.int32)),
            torch.from_numpy(np.asarray(parts["indptr"], dtype=np.int64)),
            len(texts),
        )

    def scores(self, queries: Sequence[str]) -> Tensor:
        """BM25 of every text for every query, float32 [len(queries), N]; O(postings of the queries' terms)."""
        found = [
            [self.vocabulary[t] for t in terms(query, self.tokeniser) if t in self.vocabulary] for query in queries
        ]
        asked = Ragged.from_lists(found, device=self.ptr.device)
        owner, posting = ragged_slots(self.ptr, asked.values)
        out = torch.zeros(len(queries) * self.size, device=self.weight.device)
        out.index_add_(0, asked.batch()[owner] * self.size + self.text[posting].long(), self.weight[posting])
        return out.view(len(queries), self.size)

    def save(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        write_tensors(folder / "postings.safetensors", {"weight": self.weight, "text": self.text, "ptr": self.ptr})
        write_json(
            folder / "vocabulary.json", {"size": self.size, "terms": list(self.vocabulary), "tokeniser": self.tokeniser}
        )

    @classmethod
    def load(cls, folder: Path) -> "LexicalIndex":
        """Read what `save` wrote; postings without a version are of version 1 and are read as before.

        Raises:
            IndexFormatError: a file is broken, or a newer version of `terms` made the postings.
        """
        tensors = read_tensors(folder / "postings.safetensors")
        meta = read_json(folder / "vocabulary.json")
        version = meta.get("tokeniser", 1)
        if version not in range(1, TOKENISER + 1):
            raise IndexFormatError(
                f"{folder / 'vocabulary.json'}: its terms were made by tokeniser {version!r}, and this qgrag knows "
                f"1 to {TOKENISER}; update qgrag, or build the index anew: qgrag index DOCUMENTS --out ANOTHER_FOLDER"
            )
        vocabulary = {term: i for i, term in enumerate(meta["terms"])}
        text, ptr = tensors["text"], tensors["ptr"]
        whole = (
            len(ptr) == len(vocabulary) + 1 and ptr[0] == 0 and ptr[-1] == len(text) and bool((ptr.diff() >= 0).all())
        )
        if not whole or (len(text) and not 0 <= int(text.min()) <= int(text.max()) < meta["size"]):
            raise IndexFormatError(
                f"{folder / 'postings.safetensors'}: its postings lead to texts or terms that are not there; the files "
                "were changed, build the index again"
            )
        return cls(vocabulary, tensors["weight"], tensors["text"], tensors["ptr"], meta["size"], version)
