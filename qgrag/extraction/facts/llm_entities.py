"""Entities and relations with descriptions by a language model, with gleaning (FG-RAG, QMKGF section 3.1)."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from pydantic import BaseModel, ConfigDict

from qgrag.corpus.records import Chunk
from qgrag.errors import ConfigError
from qgrag.extraction.facts.llm_triples import gated_triples, mentions_of
from qgrag.extraction.grounding import one_line
from qgrag.extraction.llm_step import ExtractionStep
from qgrag.extraction.name_gate import NameGate
from qgrag.extraction.outcome import count_repairs, outcome
from qgrag.extraction.records import Description, Extracted, Facts
from qgrag.llm.model import LanguageModel, StepEstimate
from qgrag.llm.prompts import Prompts
from qgrag.llm.records import Completion, CompletionError, Message
from qgrag.names.forms import without_punctuation
from qgrag.names.vocabulary import UNTYPED

TOKENS_PER_CHARACTER = 0.6


class GeneratedEntity(BaseModel):
    model_config = ConfigDict(coerce_numbers_to_str=True)

    name: str
    type: str = UNTYPED
    description: str = ""


class GeneratedRelation(BaseModel):
    model_config = ConfigDict(coerce_numbers_to_str=True)

    source: str
    relation: str
    target: str
    description: str = ""


class GeneratedEntities(BaseModel):
    entities: list[GeneratedEntity] = []
    relations: list[GeneratedRelation] = []


@dataclass
class _Reading:
    """What the passes over one chunk have found so far."""

    messages: list[Message]
    entities: list[GeneratedEntity] = field(default_factory=list)
    relations: list[GeneratedRelation] = field(default_factory=list)
    errors: list[CompletionError] = field(default_factory=list)
    completions: list[Completion] = field(default_factory=list)
    finished: bool = False


class LLMEntityExtractor(ExtractionStep):
    """A `FactExtractor` that gives typed mentions, triples whose sentence is the relation's description, and
    descriptions of entities.

    Args:
        gleaning: how many further passes over each chunk ask for what is missing; a pass that brings nothing is the
            last. Where a pass fails, what the others brought is kept.
    """

    step = "entities"
    prompt_names = ("entities", "entities_more")

    def __init__(self, model: LanguageModel, prompts: Prompts | None = None, gleaning: int = 1) -> None:
        super().__init__(model, prompts)
        if gleaning < 0:
            raise ConfigError(f"gleaning must not be negative, got {gleaning}")
        self.gleaning = gleaning

    @property
    def settings(self) -> str:
        return f"gleaning={self.gleaning}"

    def __call__(self, chunks: Sequence[Chunk]) -> list[Extracted[Facts]]:
        """Raises:
        LLMUnavailableError: the model cannot be used at all.
        """
        readings = [_Reading(self._conversation(chunk)) for chunk in chunks]
        for _ in range(self.gleaning + 1):
            under_way = [i for i, reading in enumerate(readings) if not reading.finished]
            if not under_way:
                break
            completions = self.model.complete(
                [readings[i].messages for i in under_way],
                GeneratedEntities,
                step=self.step,
                owners=[chunks[i].id for i in under_way],
            )
            for i, completion in zip(under_way, completions, strict=True):
                self._take(readings[i], completion)
        return [self._extracted(chunk, reading) for chunk, reading in zip(chunks, readings, strict=True)]

    def estimate(self, chunks: Sequence[Chunk]) -> StepEstimate:
        """What extraction from these chunks would cost; nothing is sent. Later passes are assumed to be as long as the
        first."""
        answer = int(TOKENS_PER_CHARACTER * sum(len(chunk.text) for chunk in chunks) / max(1, len(chunks)))
        first = self.model.estimate(
            [self._conversation(chunk) for chunk in chunks], GeneratedEntities, step=self.step, answer_tokens=answer
        )
        total = first
        for n in range(1, self.gleaning + 1):
            total += StepEstimate(
                self.step,
                first.calls,
                first.cache_hits,
                first.prompt_tokens + n * first.completion_tokens,
                first.completion_tokens // 2,
            )
        return total

    def _conversation(self, chunk: Chunk) -> list[Message]:
        return self.prompts["entities"].fill(language=self.prompts.language, title=chunk.title, text=chunk.readable)

    def _take(self, reading: _Reading, completion: Completion) -> None:
        reading.completions.append(completion)
        generated = completion.parsed(GeneratedEntities)
        if generated is None:
            if completion.error is not None:
                reading.errors.append(completion.error)
            reading.finished = True
            return
        reading.entities += generated.entities
        reading.relations += generated.relations
        reading.finished = not (generated.entities or generated.relations)
        reading.messages += [
            {"role": "assistant", "content": generated.model_dump_json()},
            *self.prompts["entities_more"].fill(),
        ]

    def _extracted(self, chunk: Chunk, reading: _Reading) -> Extracted[Facts]:
        gate = NameGate(chunk, self.prompts["entities"].text)
        for completion in reading.completions:
            count_repairs(completion, gate.counts)
        types: dict[str, str] = {}
        names: list[str] = []
        described: dict[tuple[str, str], Description] = {}
        for entity in reading.entities:
            name = gate(entity.name)
            if not name:
                continue
            names.append(name)
            types.setdefault(without_punctuation(name), _entity_type(entity.type))
            text = one_line(entity.description)
            says_more = any(c.isalnum() for c in text) and text.casefold() != name.casefold()
            if says_more and not gate.is_example(text):
                described.setdefault((without_punctuation(name), text), Description(name, text))
        items = [(r.source, r.relation, r.target, one_line(r.description)) for r in reading.relations]
        triples = gated_triples(items, chunk, gate)
        names += [name for triple in triples for name in (triple.head, triple.tail)]
        facts = Facts(mentions_of(names, chunk, types), triples, tuple(described.values()))
        return outcome(
            facts,
            bool(facts.mentions or facts.triples or facts.descriptions),
            reading.errors,
            gate.counts,
            "the model found no entity",
        )


def _entity_type(raw: str) -> str:
    """One upper-case word; `OTHER` for whatever is none."""
    word = one_line(raw).upper().replace(" ", "_")
    return word if word.isidentifier() and len(word) <= 40 else UNTYPED
