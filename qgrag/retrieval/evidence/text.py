"""Texts on one line."""

MAX_CHARACTERS = 240


def shortened(text: str, limit: int = MAX_CHARACTERS) -> str:
    """A text on one line, cut after `limit` characters."""
    line = " ".join(text.split())
    return line if len(line) <= limit else f"{line[:limit]}…"
