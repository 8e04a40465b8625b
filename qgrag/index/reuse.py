"""Work done once per text: vectors and extractions are looked up by content before they are made."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
import torch
from torch import Tensor

from qgrag.corpus.records import Chunk, text_key
from qgrag.extraction.records import Extracted, FactExtractor, QuestionGenerator
from qgrag.index.journal import Journal
from qgrag.models.embedder import Embedder
from qgrag.models.vectors import checked_vectors
from qgrag.progress import progress

VECTOR_BATCH = 2048
CHUNK_BATCH = 256


class CachedEncoder:
    """Encodes each distinct text once: known vectors come from an earlier index or from the journal.

    Args:
        embedder: makes the vectors that are not known.
        journal: keeps each batch of new vectors until the build is done.
    """

    def __init__(self, embedder: Embedder, journal: Journal) -> None:
        self._embedder = embedder
        self._journal = journal
        self._kind = f"vectors-{text_key(embedder.fingerprint)[:12]}"
        self._rows: dict[str, tuple[Tensor, int]] = {}
        self.encoded = 0
        known = list(journal.read(self._kind))
        if known:
            block = torch.from_numpy(np.frombuffer(b"".join(payload for _, payload in known), dtype=np.float32).copy())
            self.add((key for key, _ in known), block.view(len(known), -1))

    def add(self, keys: Iterable[str], vectors: Tensor) -> None:
        """Make known the vectors [n, d] of the texts with these keys."""
        for row, key in enumerate(keys):
            self._rows[key] = (vectors, row)

    def __call__(self, texts: Sequence[str], description: str = "Embedding") -> Tensor:
        """Vectors of `texts`, float32 [len(texts), d], in order."""
        keys = [text_key(text) for text in texts]
        missing = {key: text for key, text in zip(keys, texts) if key not in self._rows}
        if missing:
            self._encode(list(missing), list(missing.values()), description)
        out = torch.empty(len(texts), self._embedder.dimension)
        for source, rows in self._by_source(keys):
            out[rows[:, 0]] = source[rows[:, 1]]
        return out

    def _encode(self, keys: list[str], texts: list[str], description: str) -> None:
        with progress(description, len(texts)) as bar:
            for start in range(0, len(texts), VECTOR_BATCH):
                batch = texts[start : start + VECTOR_BATCH]
                vectors = self._embedder.encode(batch, description=description)
                vectors = checked_vectors(vectors, batch, self._embedder.name)
                batch_keys = keys[start : start + VECTOR_BATCH]
                self._journal.append(
                    self._kind, ((key, row.tobytes()) for key, row in zip(batch_keys, vectors.numpy()))
                )
                self.add(batch_keys, vectors)
                self.encoded += len(batch)
                bar.advance(len(batch))

    def _by_source(self, keys: Sequence[str]) -> list[tuple[Tensor, Tensor]]:
        """Pairs of (vectors, [m, 2] of output row and source row), one a source tensor."""
        groups: dict[int, tuple[Tensor, list[tuple[int, int]]]] = {}
        for position, key in enumerate(keys):
            source, row = self._rows[key]
            groups.setdefault(id(source), (source, []))[1].append((position, row))
        return [(source, torch.tensor(rows)) for source, rows in groups.values()]


class CachedExtraction:
    """Runs an extractor on each distinct chunk once; failed chunks are tried again at the next build.

    Args:
        kind: names the extraction in the journal and in the index.
        extractor: called with the chunks whose result is not known.
        decode: makes the value from its JSON form.
        journal: keeps each finished batch until the build is done.
        known: results of an earlier index, JSON by key.
    """

    def __init__(
        self,
        kind: str,
        extractor: QuestionGenerator | FactExtractor,
        decode: Callable[[Any], Any],
        journal: Journal,
        known: Mapping[str, bytes],
    ) -> None:
        self._extractor = extractor
        self._decode = decode
        self._journal = journal
        self._fingerprint = extractor.fingerprint
        self._kind = f"{kind}-{text_key(self._fingerprint)[:12]}"
        self._known = {**known, **dict(journal.read(self._kind))}
        self.extracted = 0

    def key(self, chunk: Chunk) -> str:
        return text_key(f"{self._fingerprint}\x00{chunk.title}\x00{chunk.readable}")

    def missing(self, chunks: Sequence[Chunk]) -> dict[str, Chunk]:
        """The chunks whose result is not known, by key; of equal chunks the last."""
        return {key: chunk for chunk in chunks if (key := self.key(chunk)) not in self._known}

    def __call__(self, chunks: Sequence[Chunk]) -> list[Extracted[Any]]:
        """Outcomes for `chunks`, in order."""
        fresh = self._run(self.missing(chunks))
        outcomes = []
        for chunk in chunks:
            key = self.key(chunk)
            if key in fresh:
                outcomes.append(fresh[key])
            else:
                raw = json.loads(self._known[key])
                outcomes.append(Extracted(self._decode(raw["value"]), raw["status"], raw["reason"], raw["counts"]))
        return outcomes

    def _run(self, missing: Mapping[str, Chunk]) -> dict[str, Extracted[Any]]:
        keys, chunks = list(missing), list(missing.values())
        outcomes: dict[str, Extracted[Any]] = {}
        with progress(f"Extracting {self._kind.rsplit('-', 1)[0]}", len(chunks)) as bar:
            for start in range(0, len(chunks), CHUNK_BATCH):
                results = self._extractor(chunks[start : start + CHUNK_BATCH])
                batch: dict[str, Extracted[Any]] = dict(zip(keys[start : start + CHUNK_BATCH], results))
                done = {k: encode_outcome(r) for k, r in batch.items() if r.status != "failed"}
                self._journal.append(self._kind, done.items())
                self._known.update(done)
                outcomes.update(batch)
                self.extracted += len(batch)
                bar.advance(len(batch))
        return outcomes

    def stored(self, chunks: Sequence[Chunk]) -> dict[str, bytes]:
        """JSON by key of every result of these chunks that did not fail, to be kept with the index."""
        keys = {self.key(chunk) for chunk in chunks}
        return {key: self._known[key] for key in sorted(keys & self._known.keys())}


def encode_outcome(outcome: Extracted[Any]) -> bytes:
    return json.dumps(asdict(outcome), ensure_ascii=False, sort_keys=True).encode()
