"""The extractors of a build, and their results as kept with an index."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from qgrag.corpus.records import Chunk
from qgrag.extraction.facts.llm_entities import LLMEntityExtractor
from qgrag.extraction.facts.llm_triples import LLMTripleExtractor
from qgrag.extraction.facts.local_facts import LocalFactExtractor
from qgrag.extraction.questions.llm_questions import LLMQuestionGenerator
from qgrag.extraction.questions.llm_questions_and_sentences import LLMQuestionsAndSentences
from qgrag.extraction.questions.local_questions import LocalQuestionConfig, LocalQuestionGenerator
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
from qgrag.index.knowledge.build import KnowledgeGraphConfig
from qgrag.index.query_graph import QueryGraphConfig
from qgrag.index.reuse import CachedExtraction
from qgrag.index.storage import read_table, write_table
from qgrag.llm.cache import ResponseCache
from qgrag.llm.cached_model import load_language_model
from qgrag.llm.model import LanguageModel, StepEstimate
from qgrag.llm.prompts import Prompts
from qgrag.llm.wrappers import StopAtBudget

FOLDER = "extracted"
LLM_CACHE = ".llm-cache.sqlite"
"""The language model's answers, in the index folder beside the snapshot, so that they outlive a killed build."""

ASKING = (LLMQuestionsAndSentences, LLMTripleExtractor, LLMEntityExtractor)


@dataclass(frozen=True, slots=True)
class Extractors:
    """What turns chunks into question-answer pairs and into facts; None where the index holds no such graph.

    Args:
        questions: makes the pairs.
        facts: makes the facts.
        answers: what keeps the language model's answers, None where none is asked or nothing is kept.
    """

    questions: QuestionGenerator | None = None
    facts: FactExtractor | None = None
    answers: ResponseCache | None = None

    @classmethod
    def named_by(cls, config: IndexConfig, model: LanguageModel | None = None) -> "Extractors":
        """The extractors that a configuration names: rules on spaCy's parse, or steps that ask `model`.

        Raises:
            ValueError: the configuration asks a language model and there is none.
        """
        if config.asks_llm and model is None:
            raise ValueError("the configuration asks a language model; pass it as `model`")
        prompts = Prompts(config.prompts)
        return cls(
            _question_generator(config.query_graph, model, prompts) if config.query_graph else None,
            _fact_extractor(config.knowledge_graph, model, prompts) if config.knowledge_graph else None,
        )

    def fingerprints(self) -> dict[str, str]:
        """Fingerprint of each extractor that is there, by kind."""
        return {kind: extractor.fingerprint for kind, extractor in self.by_kind().items()}

    def by_kind(self) -> dict[str, QuestionGenerator | FactExtractor]:
        """The extractors that are there."""
        there = {"questions": self.questions, "facts": self.facts}
        return {kind: extractor for kind, extractor in there.items() if extractor is not None}

    def cached(self, kind: str, journal: Journal, known: Mapping[str, bytes]) -> CachedExtraction:
        extractor = self.by_kind().get(kind)
        if extractor is None:
            raise ValueError(f"no extractor of {kind} was given, but the configuration asks for its graph")
        return CachedExtraction(kind, extractor, DECODERS[kind], journal, known)

    def estimate(
        self, chunks: Sequence[Chunk], journal: Journal, stored: Callable[[str], Mapping[str, bytes]]
    ) -> tuple[StepEstimate, ...]:
        """What the steps that ask a language model would spend on the chunks whose result is not known.

        Args:
            chunks: of the whole index.
            journal: of a build that has not ended.
            stored: gives what an earlier index holds of one kind, JSON by key.
        """
        estimates = []
        for kind, extractor in self.by_kind().items():
            if isinstance(extractor, ASKING):
                extraction = self.cached(kind, journal, stored(kind))
                estimates.append(extractor.estimate(list(extraction.missing(chunks).values())))
        return tuple(estimates)


@contextmanager
def open_extractors(config: IndexConfig, cache: Path | None) -> Iterator[Extractors]:
    """The extractors that a configuration names, their language model closed at the end.

    Args:
        config: names them.
        cache: file of the language model's answers; None asks for each anew.

    Raises:
        ConfigError: a language model is to be asked, and `config.llm` names none or cannot be used.
    """
    if not config.asks_llm:
        yield Extractors.named_by(config)
        return
    model = load_language_model(config.llm, cache)
    try:
        yield replace(Extractors.named_by(config, StopAtBudget(model)), answers=model.cache)
    finally:
        model.close()


def _question_generator(config: QueryGraphConfig, model: LanguageModel | None, prompts: Prompts) -> QuestionGenerator:
    if config.generator == "llm" and model is not None:
        return LLMQuestionsAndSentences(LLMQuestionGenerator(model, prompts, config.pairs), config.sentences)
    return LocalQuestionGenerator(LocalQuestionConfig(config.pairs, config.sentences))


def _fact_extractor(config: KnowledgeGraphConfig, model: LanguageModel | None, prompts: Prompts) -> FactExtractor:
    if config.extractor == "triples" and model is not None:
        return LLMTripleExtractor(model, prompts)
    if config.extractor == "entities" and model is not None:
        return LLMEntityExtractor(model, prompts, config.gleaning)
    return LocalFactExtractor()


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
