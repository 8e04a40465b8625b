"""Finite clauses of a parsed sentence: who, did what, to what, where and when."""

from collections.abc import Iterator
from dataclasses import dataclass

from spacy.tokens import Span, Token

from qgrag.extraction.rendering import words

FINITE = frozenset(("VBD", "VBZ", "VBP", "MD"))
SUBJECTS = frozenset(("nsubj", "nsubjpass"))
COMPLEMENTS = words("dobj attr oprd dative prep agent xcomp npadvmod acomp")
LOOSE = frozenset(("appos", "relcl", "acl", "punct", "parataxis", "dep", "advcl"))
TEMPORAL = frozenset(("DATE", "TIME"))
PLACES = frozenset(("GPE", "LOC", "FAC"))
MAX_PHRASE = 24


@dataclass(frozen=True, slots=True)
class Phrase:
    """A part of a clause: its head, and its tokens in order."""

    head: Token
    tokens: tuple[Token, ...]

    def names_any(self, types: frozenset[str]) -> bool:
        return any(token.ent_type_ in types for token in self.tokens)


@dataclass(frozen=True, slots=True)
class Clause:
    """One finite verb with its subject.

    Args:
        subject: the subject without loose additions such as appositions and relative clauses.
        auxiliaries: 'has', 'been', 'will', in order.
        negated: whether 'not' belongs to the verb.
        verb: the main verb, or the copula.
        particle: 'up' in 'set up', if any.
        complements: objects, predicates and prepositional phrases in order, also those before the subject.
    """

    subject: Phrase
    auxiliaries: tuple[Token, ...]
    negated: Token | None
    verb: Token
    particle: Token | None
    complements: tuple[Phrase, ...]

    @property
    def finite(self) -> Token:
        return self.auxiliaries[0] if self.auxiliaries else self.verb


def clauses(sentence: Span) -> Iterator[Clause]:
    """Clauses of the main verb, of the verbs joined to it, and of sentences run together by commas."""
    for verb in sentence:
        if verb.pos_ in ("VERB", "AUX") and _is_main(verb) and (clause := _clause(verb)):
            yield clause


def noun_phrase(head: Token) -> Phrase:
    """The head with its modifiers; appositions, clauses and brackets that follow it are left out."""
    left = {token.i for child in head.lefts for token in child.subtree}
    right = {
        token.i
        for child in head.rights
        if child.dep_ not in LOOSE
        for token in child.subtree
        if not any(above.dep_ in ("relcl", "appos", "punct") for above in _up_to(token, head))
    }
    return Phrase(head, tuple(head.doc[i] for i in sorted(left | {head.i} | right)))


def full_phrase(head: Token, limit: int = MAX_PHRASE) -> Phrase:
    """The head with all that depends on it, cut before the first clause or bracket that would pass `limit` tokens."""
    tokens = tuple(head.subtree)
    if len(tokens) > limit:
        thing = next((child for child in head.children if child.dep_ == "pobj"), None)
        if head.dep_ in ("prep", "agent") and thing is not None:
            return Phrase(head, (head, *noun_phrase(thing).tokens))
        return noun_phrase(head)
    return Phrase(head, tokens)


def _up_to(token: Token, head: Token) -> Iterator[Token]:
    while token.i != head.i:
        yield token
        token = token.head


def _is_main(verb: Token) -> bool:
    if verb.dep_ == "ROOT":
        return True
    if verb.dep_ == "conj":
        return verb.head.pos_ in ("VERB", "AUX") and _is_main(verb.head)
    return verb.dep_ == "ccomp" and verb.head.i > verb.i and _is_main(verb.head)


def _clause(verb: Token) -> Clause | None:
    auxiliaries = tuple(token for token in verb.lefts if token.dep_ in ("aux", "auxpass"))
    subject = _subject(verb)
    if subject is None or subject.i > verb.i or (auxiliaries or (verb,))[0].tag_ not in FINITE:
        return None
    if subject.tag_ in ("WDT", "WP", "EX") or any(token.tag_.startswith("W") for token in verb.lefts):
        return None
    parts = [
        full_phrase(child)
        for child in verb.children
        if child.dep_ in COMPLEMENTS
        and child.tag_ != "WP"
        and (child.i > verb.i or child.dep_ == "prep")
        and (child.dep_ != "npadvmod" or child.ent_type_ in TEMPORAL)
    ]
    return Clause(
        noun_phrase(subject),
        auxiliaries,
        next((token for token in verb.children if token.dep_ == "neg"), None),
        verb,
        next((token for token in verb.rights if token.dep_ == "prt"), None),
        tuple(part for part in parts if part.tokens),
    )


def _subject(verb: Token) -> Token | None:
    own = next((token for token in verb.lefts if token.dep_ in SUBJECTS), None)
    if own is None and verb.dep_ == "conj" and not any(token.dep_ == "expl" for token in verb.lefts):
        return _subject(verb.head)
    return own
