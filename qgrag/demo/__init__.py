"""A small corpus of notes on real people, films, schools and places, with questions on it."""

from importlib.resources import files
from pathlib import Path


def demo_path() -> Path:
    """The folder of notes; a note's file name is its document id."""
    return Path(str(files(__name__) / "notes"))


def demo_questions_path() -> Path:
    """JSON lines of `id`, `question`, `answer`, `documents` (the notes that are needed) and `type` (single, multi)."""
    return Path(str(files(__name__) / "questions.jsonl"))
