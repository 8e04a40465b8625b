"""BM25 over chunks or query nodes: weights from bm25s, scoring of a batch of queries in torch."""

import logging
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import bm25s
import numpy as np
import Stemmer
import torch
from bm25s.stopwords import STOPWORDS_EN
from torch import Tensor

from qgrag.errors import ConfigError
from qgrag.index.storage import read_json, read_tensors, write_json, write_tensors

CJK = r"\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
TERMS = re.compile(rf"[{CJK}]+|(?:(?![{CJK}])[^\W_])+")
IS_CJK = re.compile(rf"[{CJK}]")
JOINED_WORDS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
QUESTION_WORDS = frozenset(
    (
        "what",
        "who",
        "whom",
        "whose",
        "when",
        "where",
        "which",
        "why",
        "how",
        "do",
        "does",
        "did",
        "have",
        "has",
        "had",
        "can",
        "could",
        "should",
        "would",
        "about",
        "from",
        "been",
        "being",
        "were",
        "so",
        "i",
        "me",
        "my",
        "you",
        "your",
        "he",
        "him",
        "his",
        "she",
        "her",
        "we",
        "us",
        "our",
        "its",
        "them",
    )
)
STOP_WORDS = frozenset(STOPWORDS_EN) | QUESTION_WORDS

logging.getLogger("bm25s").setLevel(logging.WARNING)


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


def terms(text: str) -> list[str]:
    """Search terms of a text in any language.

    Words are lower-cased, stripped of English stop and question words and reduced by the Snowball stemmer; words that
    are joined with capitals (`WolfgangSchulz`) are found whole and by their parts. A run of Chinese, Japanese or
    Korean characters gives its overlapping pairs of characters.
    """
    found: list[str] = []
    for run in TERMS.findall(text):
        if IS_CJK.match(run):
            found.extend([run] if len(run) == 1 else [run[i : i + 2] for i in range(len(run) - 1)])
            continue
        parts = JOINED_WORDS.split(run)
        words = [run, *parts] if len(parts) > 1 else parts
        found.extend(_stem(word) for word in map(str.lower, words) if word not in STOP_WORDS)
    return found


@lru_cache(maxsize=200_000)
def _stem(word: str) -> str:
    return str(_stemmer().stemWord(word))


@lru_cache(maxsize=1)
def _stemmer() -> "Stemmer.Stemmer":
    return Stemmer.Stemmer("english")


@dataclass(frozen=True, slots=True)
class LexicalIndex:
    """Term-major sparse matrix of BM25 weights.

    Args:
        vocabulary: term -> row.
        weight: float32 [Z], BM25 weight of each posting.
        text: int32 [Z], the text of each posting.
        ptr: int64 [V + 1], postings of term t are ptr[t]:ptr[t + 1].
        size: number of texts N.
    """

    vocabulary: dict[str, int]
    weight: Tensor
    text: Tensor
    ptr: Tensor
    size: int

    @classmethod
    def build(cls, texts: Sequence[str], config: LexicalConfig) -> "LexicalIndex":
        tokenised = [terms(text) for text in texts]
        vocabulary = {term: i for i, term in enumerate(sorted({t for ts in tokenised for t in ts}))}
        if not vocabulary:
            empty = torch.empty(0)
            return cls({}, empty, empty.int(), torch.zeros(1, dtype=torch.long), len(texts))
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
        found = [[self.vocabulary[t] for t in terms(query) if t in self.vocabulary] for query in queries]
        term = torch.tensor([t for row in found for t in row], dtype=torch.long)
        query = torch.repeat_interleave(torch.tensor([len(row) for row in found], dtype=torch.long))
        start, count = self.ptr[term], self.ptr[term + 1] - self.ptr[term]
        shift = start - (count.cumsum(0) - count)
        posting = torch.arange(int(count.sum())) + torch.repeat_interleave(shift, count)
        out = torch.zeros(len(queries) * self.size)
        out.index_add_(
            0,
            torch.repeat_interleave(query, count) * self.size + self.text[posting].long(),
            self.weight[posting],
        )
        return out.view(len(queries), self.size)

    def save(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        write_tensors(folder / "postings.safetensors", {"weight": self.weight, "text": self.text, "ptr": self.ptr})
        write_json(folder / "vocabulary.json", {"size": self.size, "terms": list(self.vocabulary)})

    @classmethod
    def load(cls, folder: Path) -> "LexicalIndex":
        tensors = read_tensors(folder / "postings.safetensors")
        meta = read_json(folder / "vocabulary.json")
        vocabulary = {term: i for i, term in enumerate(meta["terms"])}
        return cls(vocabulary, tensors["weight"], tensors["text"], tensors["ptr"], meta["size"])
