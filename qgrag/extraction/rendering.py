"""Tokens back to text: contractions written out, names for pronouns, and the inflections that questions need."""

import re
import unicodedata
from collections.abc import Iterable, Mapping

from spacy.tokens import Token

FULL_FORMS = {"'ll": "will", "'re": "are", "'ve": "have", "'m": "am", "n't": "not", "ca": "can", "wo": "will"}
SIBILANT = re.compile(r"(?:[sxz]|ch|sh|o)$")
CONSONANT_Y = re.compile(r"[^aeiou]y$")
IRREGULAR = {"be": "is", "have": "has", "do": "does", "go": "goes"}
FUNCTION_WORDS = frozenset(("DET", "PRON", "ADP", "ADV", "SCONJ", "CCONJ"))
SPACE_BEFORE = re.compile(r"\s+([,.;:!?%)\]}”’]|'s\b|’s\b)")
PAIRED = (('"', '"'), ("(", ")"), ("[", "]"), ("“", "”"))
SPACE_AFTER = re.compile(r"([(\[{“‘$£€])\s+")


def word(token: Token) -> str:
    """The token's text, a contraction written out: "'ll" -> 'will', "'s" as a verb -> 'is' or 'has'."""
    text = token.text.replace("’", "'").lower()
    if text in ("'s", "'d") and token.pos_ in ("AUX", "VERB"):
        if text == "'s":
            return "has" if token.lemma_ == "have" else "is"
        return "would" if token.tag_ == "MD" else "had"
    if text in FULL_FORMS and token.pos_ in ("AUX", "VERB", "PART"):
        return FULL_FORMS[text]
    return token.text


def render(tokens: Iterable[Token], names: Mapping[int, str]) -> str:
    """The tokens' text.

    Args:
        tokens: of one document.
        names: token index -> the text that stands in the token's place; empty to leave the token out.
    """
    parts: list[str] = []
    for token in tokens:
        text = names.get(token.i, _mid_sentence(token))
        if not text or token.is_space or is_symbol(text):
            continue
        glued = token.i > 0 and not token.nbor(-1).whitespace_ and text == token.text
        parts.append(text if glued or not parts else f" {text}")
    return tidy("".join(parts))


def tidy(text: str) -> str:
    """One line without doubled spaces, spaces inside brackets, half a pair of quotes or brackets, or loose ends."""
    for opening, closing in PAIRED:
        if (text.count(opening) % 2) if opening == closing else (text.count(opening) != text.count(closing)):
            text = text.replace(opening, "").replace(closing, "")
    text = SPACE_AFTER.sub(r"\1", SPACE_BEFORE.sub(r"\1", " ".join(text.split())))
    return text.strip(" ,;:-–—")


def _mid_sentence(token: Token) -> str:
    """The token's word, in lower case where only its place at the start of a sentence gave it a capital."""
    text = word(token)
    plain = token.is_sent_start and not token.ent_type_ and token.pos_ in FUNCTION_WORDS and text != "I"
    named = token.i + 1 < len(token.doc) and token.nbor().is_title and token.nbor().pos_ != "NOUN"
    return text[:1].lower() + text[1:] if plain and not named else text


def is_symbol(text: str) -> bool:
    """Whether the text is made of emoji, modifiers and joiners alone."""
    return all(unicodedata.category(character) in ("So", "Sk", "Cf", "Mn", "Co", "Cn") for character in text)


def third_person(lemma: str) -> str:
    """Present tense with 'he': 'try' -> 'tries', 'watch' -> 'watches', 'have' -> 'has'."""
    if lemma in IRREGULAR:
        return IRREGULAR[lemma]
    if CONSONANT_Y.search(lemma):
        return f"{lemma[:-1]}ies"
    return f"{lemma}es" if SIBILANT.search(lemma) else f"{lemma}s"


def words(text: str) -> frozenset[str]:
    """The words of a line, as a set."""
    return frozenset(text.split())


def capitalised(text: str) -> str:
    return text[:1].upper() + text[1:]
