"""Words and types that decide what a name is."""

UNTYPED = "OTHER"
"""Type of a name of which nothing more is known."""

VALUE_TYPES = frozenset(("DATE", "TIME", "PERCENT", "MONEY", "QUANTITY", "ORDINAL", "CARDINAL"))
"""Entity types of spaCy that are values: a value can be the tail of a triple, but no node that texts share."""

PRONOUNS = frozenset(
    (
        *("i", "you", "he", "she", "it", "we", "they", "him", "her", "them", "his", "hers", "its", "their"),
        *("this", "that", "these", "those", "who", "which"),
    )
)
"""English words that stand for a name and are none."""

_ROMANCE = ("de", "di", "da", "del", "della", "des", "do", "dos", "das", "du", "la", "le", "el", "y", "e")
_OTHER = ("of", "the", "al", "bin", "ibn", "ben", "von", "van", "der", "den", "ten", "zu", "zum", "av", "af")
PARTICLES = frozenset((*_ROMANCE, *_OTHER))
"""Small words that may stand inside a name."""


def is_acronym(name: str) -> bool:
    """Whether a name is a pronoun but for its capitals, as the WHO is: equal to it in capitals alone."""
    return len(name) > 1 and name.isupper() and name.casefold() in PRONOUNS
