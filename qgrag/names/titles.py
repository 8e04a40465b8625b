"""Titles without the bracket or suffix that tells them from other titles."""

import re

_BRACKET = re.compile(r"\s*[(（][^()（）]*[)）]\s*$")
_SUFFIX = re.compile(r"\s*[,，].*$", re.S)


def base_name(title: str) -> str:
    """A title without the bracket at its end that tells it from others: 'Agni (2004 film)' -> 'Agni'."""
    return _BRACKET.sub("", title) or title


def head_name(title: str) -> str:
    """`base_name` without what follows a comma: 'Albert III, Duke of Bavaria' -> 'Albert III'."""
    base = base_name(title)
    return _SUFFIX.sub("", base) or base
