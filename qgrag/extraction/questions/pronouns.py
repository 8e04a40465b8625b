"""The names that 'I', 'you' and 'she' stand for, where that is safe to say."""

from collections.abc import Mapping
from dataclasses import dataclass

from spacy.tokens import Span, Token

from qgrag.extraction.rendering import third_person, words
from qgrag.names.titles import base_name

FIRST = frozenset(("i", "me", "myself"))
SECOND = frozenset(("you", "yourself"))
BOTH = frozenset(("we", "us", "ourselves"))
OWN = {"my": "first", "mine": "first", "your": "second", "yours": "second", "our": "both", "ours": "both"}
THIRD = frozenset(("he", "she", "it", "they"))
THIRD_OWN = frozenset(("his", "her", "its", "their"))
UNRESOLVED = words(
    "my mine your yours our ours this that these those here there one ones someone something everyone everything "
    "anyone anything nothing nobody everybody somebody"
)
MAX_TITLE_WORDS = 8


@dataclass(frozen=True, slots=True)
class Scene:
    """What the sentences of one text can take for granted.

    Args:
        title: the document's title, empty if it has none.
        speaker: who says the sentence, in a chat.
        listener: who is spoken to, in a chat of two.
    """

    title: str = ""
    speaker: str = ""
    listener: str = ""

    @property
    def topic(self) -> str:
        """The title as a subject: without a closing bracket, empty where it is too long to be a name."""
        name = base_name(self.title)
        return name if len(name.split()) <= MAX_TITLE_WORDS else ""


def references(sentence: Span, scene: Scene, kinds: frozenset[str] = frozenset()) -> dict[int, str]:
    """What stands in the place of pronouns, by token index.

    In a chat the speaker stands for the first person and, in a chat of two, the listener for the second. In a titled
    text the title stands for a pronoun in the third person that opens the sentence. It also stands for 'the film'
    there, where `kinds` holds 'film': these are the nouns that the text has called its title so far.
    """
    names = _spoken(sentence, scene) if scene.speaker else {}
    if scene.topic:
        names |= _opening(sentence, scene.topic, kinds)
    return names


def is_resolved(token: Token, names: Mapping[int, str]) -> bool:
    """Whether a reader without the context knows what the token stands for."""
    if token.i in names or (token.lower_ == "that" and token.dep_ == "mark"):
        return True
    return token.tag_ != "PRP" and token.lower_ not in UNRESOLVED


def _spoken(sentence: Span, scene: Scene) -> dict[int, str]:
    people = {"first": scene.speaker}
    if scene.listener:
        people |= {"second": scene.listener, "both": f"{scene.speaker} and {scene.listener}"}
    names = {}
    for token in sentence:
        form = token.lower_
        person = (
            OWN.get(form) or (form in FIRST and "first") or (form in SECOND and "second") or (form in BOTH and "both")
        )
        if not person or person not in people:
            continue
        name = people[person]
        names[token.i] = f"{name}'s" if form in OWN else name
        if token.dep_ in ("nsubj", "nsubjpass") and person != "both":
            names |= _agreeing(token.head)
    return names


def _agreeing(verb: Token) -> dict[int, str]:
    """The finite verb of a clause whose 'I' or 'you' has become a name: 'am' -> 'is', 'like' -> 'likes'."""
    chain = [token for token in verb.lefts if token.dep_ in ("aux", "auxpass")] + [verb]
    finite = chain[0]
    if finite.lemma_ == "be" and finite.tag_ == "VBD":
        return {finite.i: "was"}
    return {finite.i: third_person(finite.lemma_)} if finite.tag_ == "VBP" else {}


def _opening(sentence: Span, topic: str, kinds: frozenset[str]) -> dict[int, str]:
    first = next((token for token in sentence if not token.is_space), None)
    if first is None:
        return {}
    form = first.lower_
    if form in THIRD - {"they"} and first.dep_ in ("nsubj", "nsubjpass"):
        return {first.i: topic}
    if form in THIRD_OWN and first.dep_ == "poss":
        return {first.i: f"{topic}'s"}
    if form == "the" and first.head.i == first.i + 1 and first.head.lemma_.lower() in kinds:
        return {first.i: "", first.head.i: topic}
    return {}
