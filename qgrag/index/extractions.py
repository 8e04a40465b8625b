"""The extractors of a build, and their results as kept with an index."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from qgrag.extraction.local_facts import LocalFactExtractor
from qgrag.extraction.local_questions import LocalQuestionConfig, LocalQuestionGenerator
from qgrag.extraction.records import (
    Description,
    FactExtractor,
    Facts,
    Mention,
    QuestionAnswer,
    QuestionGenerator,
    Triple,
)
from qgrag.index.config import IndexConfig
from qgrag.index.journal import SCHEMA, Journal
from qgrag.index.reuse import CachedExtraction
from qgrag.index.storage import read_table, write_table

FOLDER = "extracted"


@dataclass(frozen=True, slots=True)
class Extractors:
    """What turns chunks into question-answer pairs and into facts; None where the index holds no such graph."""

    questions: QuestionGenerator | None = None
    facts: FactExtractor | None = None

    @classmethod
    def local(cls, config: IndexConfig) -> "Extractors":
        """Rules on spaCy's parse: no LLM."""
        graph = config.query_graph
        return cls(
            LocalQuestionGenerator(LocalQuestionConfig(graph.pairs, graph.sentences)) if graph else None,
            LocalFactExtractor() if config.knowledge_graph else None,
        )

    def fingerprints(self) -> dict[str, str]:
        """Fingerprint of each extractor that is there, by kind."""
        there = {"questions": self.questions, "facts": self.facts}
        return {kind: extractor.fingerprint for kind, extractor in there.items() if extractor is not None}

    def cached(self, kind: str, journal: Journal, known: Mapping[str, bytes]) -> CachedExtraction:
        extractor = self.questions if kind == "questions" else self.facts
        if extractor is None:
            raise ValueError(f"no extractor of {kind} was given, but the configuration asks for its graph")
        return CachedExtraction(kind, extractor, DECODERS[kind], journal, known)


def decode_questions(value: list[dict[str, str]]) -> tuple[QuestionAnswer, ...]:
    return tuple(QuestionAnswer(**pair) for pair in value)


def decode_facts(value: dict[str, list[dict[str, Any]]]) -> Facts:
    return Facts(
        tuple(Mention(**m) for m in value["mentions"]),
        tuple(Triple(**t) for t in value["triples"]),
        tuple(Description(**d) for d in value["descriptions"]),
    )


DECODERS: dict[str, Callable[[Any], Any]] = {"questions": decode_questions, "facts": decode_facts}


def save_stored(folder: Path, kind: str, stored: Mapping[str, bytes]) -> None:
    (folder / FOLDER).mkdir(exist_ok=True)
    write_table(folder / FOLDER / f"{kind}.parquet", {"key": list(stored), "payload": list(stored.values())}, SCHEMA)


def load_stored(folder: Path, kind: str) -> dict[str, bytes]:
    path = folder / FOLDER / f"{kind}.parquet"
    if not path.is_file():
        return {}
    table = read_table(path)
    return dict(zip(table["key"].to_pylist(), table["payload"].to_pylist()))
