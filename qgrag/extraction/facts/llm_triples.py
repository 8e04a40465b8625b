"""Triples by a language model in one pass over a chunk (DualGraphRAG, section 3.2.1)."""

from collections.abc import Sequence
from typing import Any

from pydantic import BaseModel, ConfigDict, model_validator

from qgrag.corpus.records import Chunk
from qgrag.extraction.grounding import one_line, supporting_sentence
from qgrag.extraction.llm_step import ExtractionStep
from qgrag.extraction.name_gate import NameGate
from qgrag.extraction.outcome import count_repairs, outcome
from qgrag.extraction.records import Extracted, Facts, Mention, Triple
from qgrag.llm.model import StepEstimate
from qgrag.llm.records import Completion, Message
from qgrag.names.cleaning import find_name
from qgrag.names.forms import without_punctuation
from qgrag.names.vocabulary import UNTYPED

TOKENS_PER_CHARACTER = 0.35
VAGUE_RELATIONS = frozenset(
    ("has", "have", "had", "has been", "have been", "had been", "is", "are", "was", "were", "有")
)
MAX_RELATION_CHARS = 200


class GeneratedTriple(BaseModel):
    """One statement as a model writes it; a list of three is taken as well."""

    model_config = ConfigDict(coerce_numbers_to_str=True)

    head: str
    relation: str
    tail: str

    @model_validator(mode="before")
    @classmethod
    def _from_list(cls, data: Any) -> Any:
        if isinstance(data, list) and len(data) == 3:
            return dict(zip(("head", "relation", "tail"), data))
        return data


class GeneratedTriples(BaseModel):
    triples: list[GeneratedTriple]


class LLMTripleExtractor(ExtractionStep):
    """A `FactExtractor` that gives triples, and the names in them as mentions; no descriptions.

    What `NameGate` drops is dropped and counted here too, and so are relations that say nothing (`vague_relations`),
    statements about one entity alone (`self_loops`) and repeated statements (`repeats`).
    """

    step = "triples"
    prompt_names = ("triples",)

    def __call__(self, chunks: Sequence[Chunk]) -> list[Extracted[Facts]]:
        """Raises:
        LLMUnavailableError: the model cannot be used at all.
        """
        completions = self.model.complete(
            [self._conversation(chunk) for chunk in chunks],
            GeneratedTriples,
            step=self.step,
            owners=[chunk.id for chunk in chunks],
        )
        return [self._extracted(chunk, c) for chunk, c in zip(chunks, completions, strict=True)]

    def estimate(self, chunks: Sequence[Chunk]) -> StepEstimate:
        """What extraction from these chunks would cost; nothing is sent."""
        answer = TOKENS_PER_CHARACTER * sum(len(chunk.text) for chunk in chunks) / max(1, len(chunks))
        return self.model.estimate(
            [self._conversation(chunk) for chunk in chunks],
            GeneratedTriples,
            step=self.step,
            answer_tokens=int(answer),
        )

    def _conversation(self, chunk: Chunk) -> list[Message]:
        return self.prompts["triples"].fill(language=self.prompts.language, title=chunk.title, text=chunk.readable)

    def _extracted(self, chunk: Chunk, completion: Completion) -> Extracted[Facts]:
        gate = NameGate(chunk, self.prompts["triples"].text)
        count_repairs(completion, gate.counts)
        generated = completion.parsed(GeneratedTriples)
        items = [(t.head, t.relation, t.tail, "") for t in generated.triples] if generated else []
        triples = gated_triples(items, chunk, gate)
        names = [name for triple in triples for name in (triple.head, triple.tail)]
        facts = Facts(mentions_of(names, chunk), triples)
        errors = [completion.error] if completion.error else []
        return outcome(facts, bool(triples), errors, gate.counts, "the model found no statement")


def gated_triples(items: Sequence[tuple[str, str, str, str]], chunk: Chunk, gate: NameGate) -> tuple[Triple, ...]:
    """Clean triples of (head, relation, tail, sentence) as a model wrote them; what is dropped is counted.

    An empty sentence is replaced by the chunk's sentence that supports the triple best.
    """
    kept: dict[tuple[str, str, str], Triple] = {}
    for raw_head, raw_relation, raw_tail, sentence in items:
        head, tail, relation = gate(raw_head), gate(raw_tail), one_line(raw_relation).strip(" .,;:\"'")
        reason = _reason(head, relation, tail)
        key = (without_punctuation(head), relation.casefold(), without_punctuation(tail))
        if not reason and key in kept:
            reason = "repeats"
        if reason:
            gate.counts[reason] += 1
            continue
        kept[key] = Triple(head, relation, tail, sentence or supporting_sentence(chunk.text, (head, tail), relation))
    return tuple(kept.values())


def _reason(head: str, relation: str, tail: str) -> str:
    """Why a triple of clean names is dropped, empty if it is not."""
    if not head or not tail:
        return "unnamed_triples"
    if (
        not without_punctuation(relation)
        or relation.casefold() in VAGUE_RELATIONS
        or len(relation) > MAX_RELATION_CHARS
    ):
        return "vague_relations"
    return "self_loops" if without_punctuation(head) == without_punctuation(tail) else ""


def mentions_of(names: Sequence[str], chunk: Chunk, types: dict[str, str] | None = None) -> tuple[Mention, ...]:
    """Where the chunk first has each name; a name that it does not have, in text or title, is no mention.

    Args:
        names: clean names, with or without repeats.
        chunk: where to look.
        types: `without_punctuation` of a name to its type.
    """
    found: dict[str, Mention] = {}
    for name in names:
        key = without_punctuation(name)
        if key in found:
            continue
        kind = (types or {}).get(key, UNTYPED)
        span = find_name(name, chunk.text)
        if span is not None:
            found[key] = Mention(chunk.text[slice(*span)], kind, *span)
        elif find_name(name, chunk.title):
            found[key] = Mention(name, kind, -1, -1)
    return tuple(found.values())
