"""Words and types that decide what a name is."""

UNTYPED = "OTHER"
"""Type of a name of which nothing more is known."""

VALUE_TYPES = frozenset(("DATE", "TIME", "PERCENT", "MONEY", "QUANTITY", "ORDINAL", "CARDINAL"))
"""Entity types of spaCy that are values: a value can be the tail of a triple, but no node that texts share."""

_ROMANCE = ("de", "di", "da", "del", "della", "des", "do", "dos", "das", "du", "la", "le", "el", "y", "e")
_OTHER = ("of", "the", "al", "bin", "ibn", "ben", "von", "van", "der", "den", "ten", "zu", "zum", "av", "af")
PARTICLES = frozenset((*_ROMANCE, *_OTHER))
"""Small words that may stand inside a name."""
