"""Question-answer nodes from spaCy's parse, without a language model: QCG-RAG's Doc2Query on a laptop."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import zip_longest
from typing import Literal, NamedTuple

from spacy.tokens import Doc, Span

from qgrag.corpus.records import Chunk, text_key
from qgrag.errors import ConfigError
from qgrag.extraction.chat import chat_turns, speakers, spoken_name
from qgrag.extraction.questions.chat_questions import chat_questions
from qgrag.extraction.questions.cloze_questions import cloze_questions
from qgrag.extraction.questions.pronouns import Scene, references
from qgrag.extraction.questions.question_forms import Asked, life_dates, question_forms
from qgrag.extraction.records import Extracted, QuestionAnswer
from qgrag.extraction.rendering import words
from qgrag.extraction.spacy_pipeline import DEFAULT_PIPELINE, load_pipeline, parse

RULES_VERSION = 1
BRACKET = re.compile(r"[ \t]*\([^()\n]{1,300}\)")
THINGS = words(
    "film movie album song novel book series band episode magazine company play game group show village town city "
    "district river municipality commune station school university species"
)
PARAGRAPH = re.compile(r"\n\s*\n")
MIN_WORDS, MAX_WORDS = 3, 28
MIN_SENTENCE_CHARS = 8


@dataclass(frozen=True)
class LocalQuestionConfig:
    """Doc2Query by rules (QCG-RAG, section 3.3, step 1).

    Args:
        pairs: M, the most question-answer pairs per chunk.
        sentences: `all` adds every sentence as a node of its own, `fallback` only where a chunk gives no question.
            In a chat what one person says at a time counts as one sentence.
        window: in a chat, how many turns in a row also make one sentence node, since an answer can mean little
            without the line before it; 1 for none.
        pipeline: spaCy pipeline for languages written in words.
    """

    pairs: int = 20
    sentences: Literal["all", "fallback"] = "all"
    window: int = 3
    pipeline: str = DEFAULT_PIPELINE

    def __post_init__(self) -> None:
        if self.pairs < 0:
            raise ConfigError(f"doc2query.pairs must be 0 or more, not {self.pairs}")
        if self.window < 1:
            raise ConfigError(f"doc2query.window must be at least 1, not {self.window}")
        if self.sentences not in ("all", "fallback"):
            raise ConfigError(f"doc2query.sentences must be 'all' or 'fallback', not {self.sentences!r}")


class Passage(NamedTuple):
    """A part of a chunk that is parsed on its own: a paragraph, or what one person says in a chat.

    Args:
        source: the part as the chunk has it.
        text: what is parsed: brackets left out, which break the parse of the sentence around them.
        offsets: for each character of `text` its place in `source`.
        scene: what its sentences take for granted.
    """

    source: str
    text: str
    offsets: list[int]
    scene: Scene

    @classmethod
    def of(cls, source: str, scene: Scene) -> "Passage":
        source = source.strip()
        hidden = {i for found in BRACKET.finditer(source) for i in range(found.start(), found.end())}
        offsets = [i for i in range(len(source)) if i not in hidden]
        return cls(source, "".join(source[i] for i in offsets).replace("’", "'"), offsets, scene)

    def original(self, sentence: Span) -> str:
        """The sentence as the chunk has it, on one line."""
        if not sentence.text.strip():
            return ""
        start, end = self.offsets[sentence.start_char], self.offsets[sentence.end_char - 1] + 1
        return " ".join(self.source[start:end].split())


class LocalQuestionGenerator:
    """A `QuestionGenerator` by rules: deterministic, no network, tens of chunks per second on one core.

    English: forms of each clause (who, what, when, where, how many), appositions, and in chats what a speaker says,
    asks or suggests. Chinese: one blank per question. Other languages: sentences alone.
    """

    def __init__(self, config: LocalQuestionConfig | None = None) -> None:
        self.config = config or LocalQuestionConfig()

    @property
    def fingerprint(self) -> str:
        meta = load_pipeline(self.config.pipeline).meta
        parts = [
            "local",
            RULES_VERSION,
            meta["lang"],
            meta["name"],
            meta["version"],
            sorted(asdict(self.config).items()),
        ]
        return text_key(repr(parts))

    def __call__(self, chunks: Sequence[Chunk]) -> list[Extracted[tuple[QuestionAnswer, ...]]]:
        """O(length of the chunks); one parse for all of them, under a progress bar."""
        passages = [list(chunk_passages(chunk)) for chunk in chunks]
        texts = [passage.text for group in passages for passage in group]
        documents = parse(texts, self.config.pipeline, description="Generating questions")
        return [self._extract([(passage, next(documents)) for passage in group]) for group in passages]

    def _extract(self, parsed: Iterable[tuple[Passage, Doc]]) -> Extracted[tuple[QuestionAnswer, ...]]:
        by_sentence: list[list[QuestionAnswer]] = []
        sentences: list[str] = []
        turns: list[str] = []
        for passage, document in parsed:
            kinds: frozenset[str] = frozenset()
            speaker = passage.scene.speaker
            if speaker:
                turns.append(f"{speaker}: {' '.join(passage.source.split())}")
            for sentence in document.sents:
                said = passage.original(sentence)
                text = f"{speaker}: {said}" if speaker else said
                if not speaker and len(said) >= MIN_SENTENCE_CHARS:
                    sentences.append(text)
                kinds |= _kinds(sentence)
                asked = sentence_questions(sentence, said, passage.scene, kinds)
                by_sentence.append([QuestionAnswer(item.question, item.answer, text) for item in asked])
        pairs = _spread(by_sentence, self.config.pairs)
        bare = []
        if self.config.sentences == "all" or not pairs:
            texts = dict.fromkeys([*sentences, *turns, *_windows(turns, self.config.window)])
            bare = [QuestionAnswer("", "", text) for text in texts]
        if not pairs and not bare:
            return Extracted((), "empty", "the chunk holds no sentence")
        return Extracted((*pairs, *bare), counts={"questions": len(pairs), "sentences": len(bare)})


def chunk_passages(chunk: Chunk) -> Iterator[Passage]:
    """The parts of a chunk that are parsed on their own."""
    turns = chat_turns(chunk.text)
    if not turns:
        for part in PARAGRAPH.split(chunk.text):
            if part.strip():
                yield Passage.of(part, Scene(chunk.title))
        return
    people = speakers(turns)
    ends = [turn.speaker_start for turn in turns[1:]] + [len(chunk.text)]
    for turn, end in zip(turns, ends):
        speaker = spoken_name(turn.speaker)
        listener = next((name for name in people if name != speaker), "") if len(people) == 2 else ""
        yield Passage.of(chunk.text[turn.start : end], Scene(chunk.title, speaker, listener))


def sentence_questions(sentence: Span, said: str, scene: Scene, kinds: frozenset[str]) -> list[Asked]:
    """All questions on one sentence that stand on their own, the best first, each question once.

    Args:
        sentence: the parsed sentence.
        said: the sentence as the chunk has it, with its brackets.
        scene: what it takes for granted.
        kinds: nouns that the text so far calls something ('film').
    """
    chinese = sentence.doc.lang_ == "zh"
    found = cloze_questions(said) if chinese else _english_questions(sentence, said, scene, kinds)
    unique: dict[str, Asked] = {}
    for asked in found:
        if asked.answer and (chinese or _is_plain(asked.question)):
            unique.setdefault(asked.question, asked)
    return list(unique.values())


def _english_questions(sentence: Span, said: str, scene: Scene, kinds: frozenset[str]) -> Iterator[Asked]:
    names = references(sentence, scene, kinds)
    people = {scene.speaker, scene.listener, f"{scene.speaker} and {scene.listener}"} if scene.speaker else set()
    lived = list(life_dates(said, scene.topic))
    title = frozenset(scene.topic.lower().split())
    thing = bool(kinds & THINGS) and not lived
    if lived or (not thing and _has_person(sentence, title)):
        people |= {scene.topic, *(chunk.text for chunk in sentence.noun_chunks if chunk.root.lower_ in title)}
    yield from lived
    if not said.endswith("?"):
        yield from question_forms(sentence, names, frozenset(people), title if thing else frozenset())
    if scene.speaker:
        yield from chat_questions(sentence, scene, names)


def _has_person(sentence: Span, words: frozenset[str]) -> bool:
    opening = sentence[0].lower_ in ("he", "she", "his", "her")
    return opening or any(token.ent_type_ == "PERSON" and token.lower_ in words for token in sentence)


def _is_plain(question: str) -> bool:
    return MIN_WORDS <= len(question.split()) <= MAX_WORDS and "\n" not in question and "http" not in question


def _kinds(sentence: Span) -> frozenset[str]:
    """Nouns that the sentence says something is: 'film' in 'X is a 1951 film'."""
    kinds = {token.lemma_.lower() for token in sentence if token.dep_ == "attr" and token.pos_ == "NOUN"}
    return frozenset(kinds | {"movie"} if "film" in kinds else kinds)


def _windows(turns: Sequence[str], size: int) -> Iterator[str]:
    """Every run of `size` turns as one text; all turns where there are fewer."""
    for start in range(max(len(turns) - size, 0) + 1 if turns else 0):
        yield "\n".join(turns[start : start + size])


def _spread(groups: Sequence[Sequence[QuestionAnswer]], limit: int) -> list[QuestionAnswer]:
    """At most `limit` pairs, each question once: every sentence's first, then every sentence's second, and so on."""
    found: dict[str, QuestionAnswer] = {}
    for row in zip_longest(*groups):
        for pair in row:
            if pair is not None and len(found) < limit:
                found.setdefault(pair.question, pair)
    return list(found.values())
