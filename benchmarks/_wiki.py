"""A real graph and real vectors: the mention graph and the passages of the 2WikiMultihopQA corpus."""

import hashlib
import json
import os
import re
from pathlib import Path

import torch
from _graphs import Graph
from safetensors.torch import load_file, save_file
from torch import Tensor

from qgrag.graph import to_csr
from qgrag.models.embedder import LocalEmbedder

CORPUS = Path("2wikimultihopqa/corpus.json")
LONGEST_NAME = 8
WORD = re.compile(r"\w+")


def data_folder() -> Path:
    """The folder of published data sets: QGRAG_DATA, or `data` in the current folder."""
    return Path(os.environ.get("QGRAG_DATA", "data"))


def cache_folder() -> Path:
    """QGRAG_BENCH_CACHE, or a folder in the user's cache."""
    folder = Path(os.environ.get("QGRAG_BENCH_CACHE", Path.home() / ".cache" / "qgrag-bench"))
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def passages() -> list[dict[str, str]]:
    """The corpus as published; FileNotFoundError if it is not there."""
    return json.loads((data_folder() / CORPUS).read_text(encoding="utf-8"))


def mention_graph(corpus: list[dict[str, str]], device: torch.device) -> Graph:
    """Passages and names: a passage is joined to every title that its text names and to its own title.

    Names are titles without what follows in brackets, matched by whole words, the longest first. Passage p is node
    p; names follow. Every edge weighs 1.
    """
    names: dict[tuple[str, ...], int] = {}
    own = []
    for passage in corpus:
        name = tuple(WORD.findall(passage["title"].split(" (")[0].lower()))
        own.append(names.setdefault(name, len(names)))
    edges = {(page, len(corpus) + name) for page, name in enumerate(own)}
    for page, passage in enumerate(corpus):
        words = tuple(WORD.findall(passage["text"].lower()))
        place = 0
        while place < len(words):
            for length in range(min(LONGEST_NAME, len(words) - place), 0, -1):
                name = names.get(words[place : place + length])
                if name is not None:
                    edges.add((page, len(corpus) + name))
                    break
            place += length
    edge_index = torch.tensor(sorted(edges), device=device).t()
    weight = torch.ones(edge_index.size(1), device=device)
    num_nodes = len(corpus) + len(names)
    return Graph("2wiki-mentions", edge_index, weight, to_csr(edge_index, weight, num_nodes=num_nodes, undirected=True))


def passage_vectors(corpus: list[dict[str, str]], device: torch.device) -> Tensor:
    """Vectors of the passages, title first; computed once for a model and a corpus, then read from the cache."""
    embedder = LocalEmbedder()
    text = json.dumps([embedder.fingerprint, corpus]).encode()
    path = cache_folder() / f"2wiki-{hashlib.sha256(text).hexdigest()[:16]}.safetensors"
    if not path.exists():
        vectors = embedder.encode([f"{passage['title']}\n{passage['text']}" for passage in corpus])
        save_file({"x": vectors.contiguous()}, path)
    return load_file(path)["x"].to(device)
