"""Triples from a dependency parse: who did what to whom, in the text's own words."""

import re
from collections.abc import Callable, Iterator, Sequence

from spacy.tokens import Doc, Token

from qgrag.extraction.name_spans import NameSpan, value_at
from qgrag.extraction.records import Triple

SUBJECTS = frozenset(("nsubj", "nsubjpass"))
OBJECTS = frozenset(("dobj", "dative", "attr", "oprd"))
RELATIVES = frozenset(("who", "whom", "which"))
PRONOUNS = RELATIVES | frozenset(
    ("he", "she", "it", "they", "him", "her", "them", "his", "its", "their", "himself", "herself", "itself")
)
_MODIFIERS = frozenset(("compound", "amod", "nmod", "nummod"))
_MAX_CONCEPT_TOKENS = 5
_LIFESPAN = re.compile(
    r"\(\s*(?P<born>(?:[^\W\d_]+\s+)?(?:\d{1,2}\s+)?(?:[^\W\d_]+\s+)?(?:\d{1,2},\s+)?\d{3,4})\s*[–—-]\s*"
    r"(?P<died>(?:[^\W\d_]+\s+)?(?:\d{1,2}\s+)?(?:[^\W\d_]+\s+)?(?:\d{1,2},\s+)?\d{3,4})\s*\)"
)


class DependencyTriples:
    """The triples of one parsed text.

    The rules go by the labels of spaCy's English pipelines. They take subject, verb and object, also through
    prepositions, passive agents, conjunctions and relative or participle clauses; what a copula says; nouns of kinship
    and office ('his wife Anna', 'Hugh, the son of Boso'); and life dates in brackets. A pronoun stands for the last
    named subject, before any for the topic. A clause of the first sentence whose subject the parser missed is about the
    topic too. A negated verb keeps its 'not'.

    Args:
        doc: a parsed document.
        names: its names, in text order.
        topic: what the document is about (its title), or empty.
        as_topic: whether a name in the text means the topic; the topic then takes its place.
    """

    def __init__(self, doc: Doc, names: Sequence[NameSpan], topic: str, as_topic: Callable[[NameSpan], bool]) -> None:
        self._doc = doc
        self._topic = topic
        self._name_of: dict[int, str] = {}
        self._span_of: dict[int, NameSpan] = {}
        for span in names:
            name = topic if as_topic(span) else span.text(doc)
            for token in range(span.first, span.last):
                self._name_of[token] = name
                self._span_of[token] = span
        self._antecedent = topic
        self._kind = ""

    def __call__(self) -> list[Triple]:
        """Triples in text order, each once: heads are names, tails names, values or short noun phrases."""
        found: dict[tuple[str, str, str], Triple] = {}
        for sentence in self._doc.sents:
            text = sentence.text.strip()
            for token in sentence:
                for head, relation, tail in self._at(token):
                    relation = " ".join(relation.split())
                    if head and relation and tail and head != tail:
                        found.setdefault((head, relation, tail), Triple(head, relation, tail, text))
            self._remember_subject(sentence.root)
        return list(found.values())

    def _at(self, token: Token) -> Iterator[tuple[str, str, str]]:
        if token.pos_ in ("VERB", "AUX"):
            yield from self._clause(token)
        elif token.pos_ in ("NOUN", "PROPN"):
            yield from self._noun(token)
        if token.text == "(" and self._topic and token.i < 40:
            yield from self._lifespan(token)

    def _clause(self, verb: Token) -> Iterator[tuple[str, str, str]]:
        yield from self._role(verb)
        subjects = [name for name in map(self._name, _subjects(verb)) if name]
        if not subjects and self._is_about_topic(verb):
            subjects = [self._topic]
        if not subjects:
            return
        words = _verb_words(verb)
        for relation, argument in _arguments(verb, words):
            for tail_token in _with_conjuncts(argument):
                if verb.lemma_ == "be" and argument.dep_ == "attr":
                    yield from self._copula(subjects, tail_token, words)
                tail = self._tail(tail_token)
                for head in subjects:
                    yield head, relation, tail
        for child in verb.children:
            if child.dep_ in ("npadvmod", "tmod") and (value := value_at(self._doc, child.i)):
                for head in subjects:
                    yield head, words, value

    def _is_about_topic(self, verb: Token) -> bool:
        """Whether a clause without a subject is about the topic: a title like a sentence confuses parsers."""
        first_sentence = verb.sent.start == 0 and bool(self._topic)
        return first_sentence and verb.dep_ in ("acl", "relcl", "ccomp", "ROOT") and not _has_subject(verb)

    def _copula(self, subjects: list[str], noun: Token, words: str) -> Iterator[tuple[str, str, str]]:
        """'X was the daughter of Y': (X, daughter of, Y)."""
        negated = "not " if words.startswith("not ") else ""
        for preposition, target in _prepositional(noun):
            for tail_token in _with_conjuncts(target):
                for head in subjects:
                    yield head, f"{negated}{_noun_words(noun)} {preposition}", self._name(tail_token)

    def _role(self, verb: Token) -> Iterator[tuple[str, str, str]]:
        """'Her brother was Y': (her, brother, Y)."""
        negated = "not " if any(child.dep_ == "neg" for child in verb.children) else ""
        for name in (c for c in verb.children if verb.lemma_ == "be" and c.dep_ == "attr" and c.i in self._name_of):
            for subject in _subjects(verb):
                for owner in _owners(subject):
                    yield self._name(owner), f"{negated}{_noun_words(subject)}", self._name(name)

    def _noun(self, noun: Token) -> Iterator[tuple[str, str, str]]:
        own = self._name_of.get(noun.i, "")
        if own and noun.dep_ == "appos" and noun.head.i not in self._name_of:
            for owner in _owners(noun.head):
                yield self._name(owner), _noun_words(noun.head), own
            for _, target in _prepositional(noun.head, ("of",)):
                yield self._name(target), _noun_words(noun.head), own
        if not own and noun.dep_ == "appos" and noun.head.i in self._name_of:
            head = self._name_of[noun.head.i]
            for owner in _owners(noun):
                yield self._name(owner), _noun_words(noun), head
            for preposition, target in _prepositional(noun):
                for tail_token in _with_conjuncts(target):
                    yield head, f"{_noun_words(noun)} {preposition}", self._name(tail_token)
        if own:
            role = [
                child.lower_ for child in noun.children if child.dep_ == "compound" and child.i not in self._name_of
            ]
            for owner in _owners(noun) if role else ():
                yield self._name(owner), " ".join(role), own

    def _lifespan(self, bracket: Token) -> Iterator[tuple[str, str, str]]:
        found = _LIFESPAN.match(self._doc.text, bracket.idx)
        before = self._name_of.get(bracket.i - 1, "")
        if found and before:
            yield before, "born", found["born"]
            yield before, "died", found["died"]

    def _name(self, token: Token) -> str:
        """The name that a token is part of or refers to; empty where there is none."""
        if token.i in self._name_of:
            return self._name_of[token.i]
        if token.lower_ in PRONOUNS:
            return self._relative(token) if token.lower_ in RELATIVES else self._antecedent
        if self._topic and self._kind and token.lemma_.lower() == self._kind and _is_definite(token):
            return self._topic
        return ""

    def _relative(self, token: Token) -> str:
        clause = token.head
        while clause.dep_ not in ("relcl", "ROOT") and clause.head.i != clause.i:
            clause = clause.head
        if clause.dep_ != "relcl":
            return ""
        return self._noun_or_its_subject(clause.head)

    def _noun_or_its_subject(self, noun: Token) -> str:
        if noun.i in self._name_of:
            return self._name_of[noun.i]
        for subject in _modified(noun):
            if subject.i in self._name_of or subject.lower_ in PRONOUNS:
                return self._name(subject)
        return ""

    def _tail(self, token: Token) -> str:
        if name := self._name(token):
            return name
        if value := value_at(self._doc, token.i):
            return value
        if token.pos_ != "NOUN":
            return ""
        left = token.i
        while left > token.sent.start and self._doc[left - 1].head.i == token.i and self._is_modifier(left - 1):
            left -= 1
        words = self._doc[left : token.i + 1]
        return words.text if len(words) <= _MAX_CONCEPT_TOKENS else ""

    def _is_modifier(self, token: int) -> bool:
        return self._doc[token].dep_ in _MODIFIERS and not self._doc[token].is_punct

    def _remember_subject(self, root: Token) -> None:
        """After a sentence: who a pronoun in the next one means, and what kind of thing the topic is."""
        for subject in _subjects(root):
            name = self._name(subject)
            if name == self._topic and not self._kind:
                self._kind = next((c.lemma_.lower() for c in root.children if c.dep_ == "attr"), "")
            if name and subject.dep_ in SUBJECTS:
                self._antecedent = name


def _subjects(verb: Token) -> list[Token]:
    """Whom a verb is said of: its subject, that of the clause it continues, or the noun it modifies."""
    own = [child for child in verb.children if child.dep_ in SUBJECTS]
    if own:
        return [token for subject in own for token in _with_conjuncts(subject)]
    if verb.dep_ in ("conj", "xcomp", "advcl") and verb.head.pos_ in ("VERB", "AUX") and verb.head.i != verb.i:
        return _subjects(verb.head)
    if verb.dep_ == "conj" and verb.head.dep_ in ("acl", "relcl"):
        return _subjects(verb.head)
    if verb.dep_ in ("acl", "relcl"):
        return [verb.head, *_modified(verb.head)]
    return []


def _has_subject(verb: Token) -> bool:
    return any(child.dep_ in SUBJECTS and child.lower_ not in PRONOUNS for child in verb.children)


def _modified(noun: Token) -> list[Token]:
    """What a predicate noun or an apposition says something of: 'X' in 'X is a film directed by Y'."""
    if noun.dep_ == "conj" and noun.head.i != noun.i:
        return _modified(noun.head)
    if noun.dep_ == "attr":
        return _subjects(noun.head)
    if noun.dep_ == "appos":
        return [noun.head]
    return []


def _arguments(verb: Token, words: str) -> Iterator[tuple[str, Token]]:
    for child in verb.children:
        if child.dep_ in OBJECTS:
            yield words, child
        elif child.dep_ in ("prep", "agent"):
            for target in child.children:
                if target.dep_ == "pobj":
                    yield f"{words} {child.text.lower()}", target


def _prepositional(noun: Token, allowed: Sequence[str] = ()) -> Iterator[tuple[str, Token]]:
    for child in noun.children:
        if child.dep_ == "prep" and (not allowed or child.lower_ in allowed):
            for target in child.children:
                if target.dep_ == "pobj":
                    yield child.text.lower(), target


def _owners(noun: Token) -> list[Token]:
    return [child for child in noun.children if child.dep_ == "poss"]


def _with_conjuncts(token: Token) -> list[Token]:
    return [token, *token.conjuncts] if token.dep_ != "conj" else [token]


def _verb_words(verb: Token) -> str:
    parts = [child.text for child in verb.children if child.dep_ == "prt"]
    negated = any(child.dep_ == "neg" for child in verb.children)
    return " ".join((["not"] if negated else []) + [verb.text, *parts]).lower()


def _noun_words(noun: Token) -> str:
    left = [child.text for child in noun.lefts if child.dep_ in ("compound", "amod") and not child.ent_type_]
    return " ".join([*left, noun.text]).lower()


def _is_definite(noun: Token) -> bool:
    return any(child.dep_ == "det" and child.lower_ in ("the", "this") for child in noun.children)
