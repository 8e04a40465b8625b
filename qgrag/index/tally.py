"""What the stages of a build count."""

import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from qgrag.corpus.records import Chunk
from qgrag.extraction.records import Extracted


@dataclass
class Tally:
    """Figures of one run; for the fields see `BuildReport`."""

    counts: dict[str, int] = field(default_factory=dict)
    new: dict[str, int] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)
    empty: list[str] = field(default_factory=list)
    extraction: dict[str, dict[str, int]] = field(default_factory=dict)

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Time the block."""
        start = time.perf_counter()
        yield
        self.seconds[name] = time.perf_counter() - start

    def add_outcomes(self, kind: str, chunks: Sequence[Chunk], outcomes: Sequence[Extracted[Any]]) -> None:
        """Count what one kind of extraction gave for each chunk, and name the chunks that gave nothing."""
        for chunk, outcome in zip(chunks, outcomes, strict=True):
            if outcome.status != "ok":
                named = self.failures if outcome.status == "failed" else self.empty
                named.append(f"{kind} of {chunk.id}: {outcome.reason}")
        self.extraction[kind] = dict(sorted(sum((Counter(o.counts) for o in outcomes), Counter[str]()).items()))
        self.counts[f"empty_{kind}"] = sum(outcome.status == "empty" for outcome in outcomes)
