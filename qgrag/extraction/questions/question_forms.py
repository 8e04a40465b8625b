"""Questions that one clause answers: who did it, what it did, to whom, when, where, how many."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from spacy.tokens import Span, Token

from qgrag.extraction.questions.clauses import PLACES, TEMPORAL, Clause, Phrase, clauses, full_phrase, noun_phrase
from qgrag.extraction.questions.pronouns import is_resolved
from qgrag.extraction.rendering import capitalised, render, third_person, word, words

PLACE_WORDS = words("in at near to into outside inside on around")
TIME_WORDS = words("in on at since until during before after from by around")
PLACE_VERBS = words("bear die live raise grow locate situate bury reside settle base study teach")
VAGUE_VERBS = words("let thank mean guess see wonder bet hear call")
ROLES = words(
    "mother father son daughter brother sister wife husband man woman boy girl actor actress singer director writer "
    "author composer king queen president founder teacher friend"
)
SPEECH_VERBS = words("say let know ask mention tell see hear")
BARE_VERBS = words("be have do get go make take say think know feel")
LIFE = re.compile(r"\(\s*(?:born\s+)?(?P<born>[^();–-]*\b\d{3,4})\s*(?:[–-]+\s*(?P<died>[^();–-]*\b\d{3,4})\s*)?[);]")
MONTH = re.compile(r"\b(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]*\b|\bborn\b|\bc\.")
PREDICATES = frozenset(("attr", "acomp", "oprd"))
CONTENT = frozenset(("NOUN", "PROPN", "VERB", "ADJ", "NUM"))
MAX_OTHERS = 14


@dataclass(frozen=True, slots=True)
class Asked:
    question: str
    answer: str


def question_forms(
    sentence: Span, names: Mapping[int, str], people: frozenset[str], things: frozenset[str] = frozenset()
) -> Iterator[Asked]:
    """Questions on a declarative English sentence with their answers, the most specific forms first.

    Args:
        sentence: a sentence with tags, dependencies and entities.
        names: what stands in the place of pronouns, by token index (`references`).
        people: names known to be people, so that the question is 'who'.
        things: words in lower case of names known to be none, whatever the tagger says.
    """
    for clause in clauses(sentence):
        yield from _ClauseQuestions(clause, names, people, things).all()
    yield from appositions(sentence, names)
    yield from participles(sentence, names)


class _ClauseQuestions:
    def __init__(
        self, clause: Clause, names: Mapping[int, str], people: frozenset[str], things: frozenset[str]
    ) -> None:
        self.clause, self.names, self.people, self.things = clause, names, people, things
        self.subject = render(clause.subject.tokens, names)
        parts = sorted(clause.complements, key=lambda part: part.head.i < clause.verb.i)
        self.parts = [part for part in parts if self.resolved(part)]

    def resolved(self, phrase: Phrase) -> bool:
        return all(is_resolved(token, self.names) for token in phrase.tokens)

    def all(self) -> Iterator[Asked]:
        verb = self.clause.verb
        if verb.lemma_.lower() in VAGUE_VERBS:
            return
        if self.subject and self.resolved(self.clause.subject):
            yield from self.times_and_places()
            yield from self.objects()
        yield from self.subjects()

    def times_and_places(self) -> Iterator[Asked]:
        for part in self.parts:
            wh = self.adverb(part)
            if wh and (len(self.parts) > 1 or self.clause.verb.lemma_ not in BARE_VERBS):
                yield self.ask(wh, part, part.tokens)

    def objects(self) -> Iterator[Asked]:
        verb = self.clause.verb
        for part in self.parts:
            dep = part.head.dep_
            if dep == "dobj":
                if counted := self.how_many(part):
                    yield counted
                yield self.ask(self.wh(part), part, part.tokens)
            elif dep == "attr" and verb.lemma_ == "be" and part.head.pos_ in ("NOUN", "PROPN"):
                yield self.ask("Who" if self.is_person(self.clause.subject) else "What", part, part.tokens)
            elif dep == "agent" and (agent := _object_of(part)):
                yield self.ask(self.wh(agent), part, agent.tokens, stranded="by")
            elif dep == "prep" and not self.adverb(part) and (thing := _object_of(part)):
                direct = any(other.head.dep_ in ("dobj", "attr", "acomp") for other in self.clause.complements)
                if not direct and verb.lemma_ != "be":
                    yield self.ask(self.wh(thing), part, thing.tokens, stranded=part.head.lower_)
            elif dep == "xcomp" and part.head.pos_ == "VERB" and part.head.lemma_ not in SPEECH_VERBS:
                to = any(token.lower_ == "to" for token in part.head.lefts)
                yield self.ask("What", part, part.tokens, stranded="to do" if to else "")

    def how_many(self, part: Phrase) -> Asked | None:
        number = next((token for token in part.head.lefts if token.dep_ == "nummod"), None)
        if number is None or part.head.tag_ != "NNS" or number.ent_type_ not in ("CARDINAL", "QUANTITY"):
            return None
        noun = render((token for token in part.tokens if token.i > number.i and token.i <= part.head.i), self.names)
        return self.ask(f"How many {noun}", part, tuple(number.subtree))

    def subjects(self) -> Iterator[Asked]:
        clause = self.clause
        said = [token for part in self.parts for token in part.tokens if token.pos_ in CONTENT]
        bare = clause.verb.lemma_ in BARE_VERBS
        if len(said) < (3 if bare else 1) or clause.subject.head.lower_ in ("it", "this", "that", "there"):
            return
        if clause.subject.head.pos_ == "PRON" and clause.subject.head.i not in self.names:
            return
        finite = self.names.get(clause.finite.i) or _with_who(clause.finite)
        rest = [word(token) for token in (*clause.auxiliaries, clause.verb) if token.i != clause.finite.i]
        negation = ["not"] if clause.negated is not None else []
        others = self.others(None)
        if not others or (clause.verb.lemma_ == "be" and not any(part.head.dep_ in PREDICATES for part in self.parts)):
            return
        if negation and not clause.auxiliaries and clause.verb.lemma_ != "be":
            return
        who = "Who" if self.is_person(clause.subject) else "What"
        yield Asked(_question(who, finite, *negation, *rest, self.particle(), others), self.subject)

    def ask(self, wh: str, omitted: Phrase, answer: tuple[Token, ...], stranded: str = "") -> Asked:
        front, rest = self.inverted()
        question = _question(wh, front, self.subject, rest, self.particle(), self.others(omitted, stranded))
        return Asked(question, render(answer, self.names))

    def inverted(self) -> tuple[str, str]:
        """The finite verb for before the subject, and the rest of the verb group for after it."""
        clause = self.clause
        negation = ["not"] if clause.negated is not None else []
        if clause.auxiliaries or clause.verb.lemma_ == "be":
            front = self.names.get(clause.finite.i) or word(clause.finite)
            rest = [word(token) for token in (*clause.auxiliaries, clause.verb) if token.i != clause.finite.i]
            return front, " ".join([*negation, *rest])
        if clause.verb.tag_ == "VBD":
            front = "did"
        else:
            front = "does" if clause.verb.tag_ == "VBZ" or clause.verb.i in self.names else "do"
        return front, " ".join([*negation, clause.verb.lemma_])

    def particle(self) -> str:
        return word(self.clause.particle) if self.clause.particle is not None else ""

    def others(self, omitted: Phrase | None, stranded: str = "") -> str:
        texts, size = [], 0
        for part in self.parts:
            if omitted is not None and part.head.i == omitted.head.i:
                texts.append(stranded)
            elif size + len(part.tokens) <= MAX_OTHERS and not (
                stranded and part.head.dep_ in ("prep", "agent", "npadvmod")
            ):
                size += len(part.tokens)
                texts.append(render(part.tokens, self.names))
        return " ".join(text for text in texts if text)

    def wh(self, phrase: Phrase) -> str:
        return "Who" if self.is_person(phrase) else "What"

    def is_person(self, phrase: Phrase) -> bool:
        head = phrase.head
        if self.names.get(head.i, render(phrase.tokens, self.names)) in self.people or head.lower_ in ("he", "she"):
            return True
        named = head.ent_type_ == "PERSON" or head.lemma_.lower() in ROLES
        return named and not any(token.lower_ in self.things for token in phrase.tokens)

    def adverb(self, part: Phrase) -> str:
        """'When' or 'Where' for a phrase that says so, 'How long' for a span of time, else the empty string."""
        if part.head.dep_ == "npadvmod":
            return "When" if part.names_any(TEMPORAL) else ""
        thing = _object_of(part) if part.head.dep_ == "prep" else None
        if thing is None:
            return ""
        kind, preposition = thing.head.ent_type_, part.head.lower_
        if kind in TEMPORAL:
            if preposition == "for":
                return "How long"
            return "When" if preposition in TIME_WORDS else ""
        place = kind in PLACES or (self.clause.verb.lemma_ in PLACE_VERBS and thing.head.pos_ == "PROPN")
        return "Where" if place and preposition in PLACE_WORDS else ""


def appositions(sentence: Span, names: Mapping[int, str]) -> Iterator[Asked]:
    """'Marie Curie, a physicist from Poland, ...' answers 'Who is Marie Curie?'."""
    for token in sentence:
        if token.dep_ == "appos" and token.pos_ == "NOUN" and token.head.ent_type_ and token.head.pos_ == "PROPN":
            described, name = full_phrase(token), noun_phrase(token.head)
            if len(described.tokens) > 1 and all(is_resolved(part, names) for part in name.tokens):
                wh = "Who" if token.head.ent_type_ == "PERSON" else "What"
                yield Asked(_question(wh, "is", render(name.tokens, names)), render(described.tokens, names))


def participles(sentence: Span, names: Mapping[int, str]) -> Iterator[Asked]:
    """'X is a film directed by Y' answers 'Who was X directed by?'."""
    for token in sentence:
        agent = next((child for child in token.rights if child.dep_ == "agent"), None)
        thing = agent and _object_of(full_phrase(agent))
        verb = token.head if token.dep_ == "conj" and token.head.tag_ == "VBN" else token
        if not thing or token.tag_ != "VBN" or verb.dep_ != "acl":
            continue
        noun = verb.head
        subject = next((child for child in noun.head.lefts if child.dep_ == "nsubj"), None)
        about = noun_phrase(subject if noun.dep_ == "attr" and subject is not None else noun)
        if all(is_resolved(part, names) for part in about.tokens):
            by = noun_phrase(thing.head)
            wh = "Who" if by.names_any(frozenset(("PERSON",))) else "What"
            question = _question(wh, "was", render(about.tokens, names), word(token), "by")
            yield Asked(question, render(thing.tokens, names))


def life_dates(text: str, topic: str) -> Iterator[Asked]:
    """Dates in brackets after a person's name: '(12 May 1900 – 3 June 1970)'."""
    found = LIFE.search(text)
    if found and MONTH.search(found[0]) and topic:
        born, died = found["born"].strip(), (found["died"] or "").strip()
        if born.lower().startswith("died"):
            born, died = "", born[4:].strip()
        if born:
            yield Asked(f"When was {topic} born?", born)
        if died:
            yield Asked(f"When did {topic} die?", died)


def _object_of(part: Phrase) -> Phrase | None:
    found = next((child for child in part.head.children if child.dep_ == "pobj"), None)
    return full_phrase(found) if found is not None and found.pos_ != "PRON" else None


def _with_who(finite: Token) -> str:
    """The finite verb as it stands after 'who' or 'what': a plural in the present becomes singular."""
    return third_person(finite.lemma_) if finite.tag_ == "VBP" and word(finite) != "are" else word(finite)


def _question(*parts: str) -> str:
    return f"{capitalised(' '.join(part for part in parts if part))}?"
