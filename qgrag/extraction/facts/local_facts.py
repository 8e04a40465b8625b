"""Facts for the knowledge graph without a language model: names, dependencies, titles and speakers."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

from spacy.tokens import Doc

from qgrag.corpus.records import Chunk
from qgrag.errors import ConfigError
from qgrag.extraction.chat import Turn, chat_turns, speakers, spoken_name
from qgrag.extraction.cjk_names import cjk_names
from qgrag.extraction.facts.dependency_triples import DependencyTriples
from qgrag.extraction.facts.sentence_facts import Sentence, descriptions, sentence_at, title_links
from qgrag.extraction.facts.title_names import Topic, with_title
from qgrag.extraction.name_spans import NameSpan, name_spans
from qgrag.extraction.records import ALSO_CALLED, Extracted, Facts, Mention, Triple
from qgrag.extraction.spacy_pipeline import DEFAULT_PIPELINE, load_pipeline, parse
from qgrag.names.titles import base_name
from qgrag.names.vocabulary import VALUE_TYPES

RULES_VERSION = 2
"""Raise it with every change of the rules that changes facts: stored facts are then made anew."""

MENTIONS = "mentions"
MENTIONS_CJK = "提及"
TALKS_WITH = "talks with"
SPEAKS_OF = "speaks of"


@dataclass(frozen=True)
class LocalFactExtractorConfig:
    """Extraction by rules.

    Args:
        pipeline: spaCy pipeline with a tagger, a parser and an entity recogniser.
        max_triples: how many triples of a chunk are kept, in text order.
    """

    pipeline: str = DEFAULT_PIPELINE
    max_triples: int = 500

    def __post_init__(self) -> None:
        if self.max_triples < 1:
            raise ConfigError(f"facts.max_triples must be at least 1, not {self.max_triples}")


class LocalFactExtractor:
    """A `FactExtractor` that asks no language model.

    A titled chunk is about its title: the title is an entity, and names that shorten it stand for it. Every other name
    in the chunk is joined to it by what the sentence says or, failing that, by 'mentions'. In a chat every speaker is
    joined to those whom they talk with and to the names in their lines. Text for which `is_cjk` is true is not parsed:
    it gets names by script, and sentence bounds.
    """

    def __init__(self, config: LocalFactExtractorConfig | None = None) -> None:
        self.config = config or LocalFactExtractorConfig()

    @property
    def fingerprint(self) -> str:
        meta = load_pipeline(self.config.pipeline).meta
        pipeline = f"{meta['lang']}-{meta['name']}-{meta['version']}"
        return f"local-{RULES_VERSION}-{pipeline}-{self.config.max_triples}"

    def __call__(self, chunks: Sequence[Chunk]) -> list[Extracted[Facts]]:
        """The facts of each chunk, in order. Nearly all of the time goes into the parse: 70 passages of 100 words per
        second on one core.

        Raises:
            ModelNotFoundError: the pipeline is not installed.
        """
        texts = [chunk.text for chunk in chunks]
        documents = parse(texts, self.config.pipeline, description="Extracting facts")
        return [self._extract(chunk, doc) for chunk, doc in zip(chunks, documents, strict=True)]

    def _extract(self, chunk: Chunk, doc: Doc) -> Extracted[Facts]:
        turns = chat_turns(chunk.text)
        if doc.lang_ == "zh":
            facts = _cjk(chunk, doc, turns)
        elif turns:
            facts = _chat(doc, turns)
        else:
            facts = _prose(chunk, doc)
        if not facts.mentions:
            return Extracted(facts, "empty", "no name in the text, and no title")
        dropped = len(facts.triples) - self.config.max_triples
        if dropped > 0:
            facts = Facts(facts.mentions, facts.triples[: self.config.max_triples], facts.descriptions)
            return Extracted(facts, counts={"triples_over_limit": dropped})
        return Extracted(facts)


def _prose(chunk: Chunk, doc: Doc) -> Facts:
    names = with_title(doc, name_spans(doc), chunk.title)
    topic = Topic(chunk.title, doc, names)
    by_dependency = DependencyTriples(doc, names, chunk.title, topic)()
    means_title = {doc[span.first].idx for span in names if topic(span)}
    mentions = _mentions(doc, names) + _titled(chunk, bool(means_title))
    sentences = _sentences(doc)

    def name_of(mention: Mention) -> str:
        return chunk.title if mention.start in means_title or mention.start < 0 else mention.surface

    links = title_links(chunk.title, mentions, by_dependency, sentences, name_of, MENTIONS)
    forms = dict.fromkeys(mention.surface for mention in mentions if mention.start in means_title)
    calls = [Triple(chunk.title, ALSO_CALLED, form) for form in forms if form != chunk.title]
    triples = (*calls, *by_dependency, *links)
    return Facts(tuple(mentions), triples, tuple(descriptions(mentions, sentences, name_of)))


def _chat(doc: Doc, turns: Sequence[Turn]) -> Facts:
    labels = {turn.speaker_start: turn for turn in turns}
    inside = [range(turn.speaker_start, turn.speaker_end) for turn in turns]
    said = [m for m in _mentions(doc, name_spans(doc)) if not any(m.start in r or m.end - 1 in r for r in inside)]
    spoken = [Mention(turn.speaker, "PERSON", turn.speaker_start, turn.speaker_end) for turn in turns]
    mentions = sorted([*said, *spoken], key=lambda mention: mention.start)
    lines = _lines(doc.text, turns)

    def name_of(mention: Mention) -> str:
        return spoken_name(mention.surface) if mention.start in labels else mention.surface

    return Facts(
        tuple(mentions),
        (*_conversation(turns, lines), *_spoken_of(turns, said, lines)),
        tuple(descriptions(mentions, lines, name_of)),
    )


def _cjk(chunk: Chunk, doc: Doc, turns: Sequence[Turn]) -> Facts:
    title = base_name(chunk.title)
    mentions = cjk_names(chunk.text, title) + _titled(chunk, title in chunk.text)
    sentences = _sentences(doc)

    def name_of(mention: Mention) -> str:
        return chunk.title if mention.start < 0 or mention.surface == title else mention.surface

    links = title_links(chunk.title, mentions, (), sentences, name_of, MENTIONS_CJK)
    talk = _conversation(turns, _lines(chunk.text, turns))
    return Facts(tuple(mentions), (*talk, *links), tuple(descriptions(mentions, sentences, name_of)))


def _mentions(doc: Doc, spans: Sequence[NameSpan]) -> list[Mention]:
    """Names and the tagger's values, in text order."""
    pieces = [(doc[span.first : span.last], span.type) for span in spans]
    names = [Mention(piece.text, kind, piece.start_char, piece.end_char) for piece, kind in pieces]
    values = [
        Mention(entity.text, entity.label_, entity.start_char, entity.end_char)
        for entity in doc.ents
        if entity.label_ in VALUE_TYPES
    ]
    return sorted([*names, *values], key=lambda mention: (mention.start, mention.end))


def _titled(chunk: Chunk, repeated: bool) -> list[Mention]:
    """The title as a mention where the text does not repeat it."""
    return [Mention(chunk.title, "OTHER", -1, -1)] if chunk.title and not repeated else []


def _sentences(doc: Doc) -> list[Sentence]:
    return [Sentence(s.start_char, s.end_char, s.text.strip()) for s in doc.sents if s.text.strip()]


def _lines(text: str, turns: Sequence[Turn]) -> list[Sentence]:
    """A chat's turns, each with its speaker, as the sentences of the chat."""
    return [
        Sentence(turn.speaker_start, turn.end, f"{spoken_name(turn.speaker)}: {text[turn.start : turn.end]}")
        for turn in turns
    ]


def _conversation(turns: Sequence[Turn], lines: Sequence[Sentence]) -> list[Triple]:
    """Each speaker talks with everybody else; the speaker's first line says so."""
    first = {spoken_name(turn.speaker): line for turn, line in reversed(list(zip(turns, lines, strict=True)))}
    names = speakers(turns)
    return [
        Triple(one, TALKS_WITH, other, first[one].text)
        for at, one in enumerate(names)
        for other in islice(names, at + 1, None)
    ]


def _spoken_of(turns: Sequence[Turn], said: Sequence[Mention], lines: Sequence[Sentence]) -> list[Triple]:
    speaker_at = {line.start: spoken_name(turn.speaker) for turn, line in zip(turns, lines, strict=True)}
    found: dict[tuple[str, str], Triple] = {}
    for mention in said:
        line = sentence_at(lines, mention.start)
        if line and mention.type not in VALUE_TYPES:
            speaker, spoken = speaker_at[line.start], mention.surface
            found.setdefault((speaker, spoken), Triple(speaker, SPEAKS_OF, spoken, line.text))
    return list(found.values())
