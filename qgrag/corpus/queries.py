"""Questions to be asked, from a JSON lines file."""

import json
from dataclasses import dataclass
from pathlib import Path

from qgrag.errors import InputError


@dataclass(frozen=True, slots=True)
class Query:
    """A question and the id under which its result is reported."""

    id: str
    text: str


def read_queries(path: Path) -> list[Query]:
    """Read JSON lines with `question` (or `query`) and, if wanted, `id`; without it the line's number is the id.

    Raises:
        InputError: names the file, the line and what is wrong with it.
    """
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not UTF-8 at byte {error.start}; save it as UTF-8") from error
    queries = []
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except json.JSONDecodeError as error:
            raise InputError(f"{path}, line {number}, column {error.colno}: not JSON: {error.msg}") from error
        text = row.get("question", row.get("query")) if isinstance(row, dict) else None
        if not isinstance(text, str) or not text.strip():
            raise InputError(f'{path}, line {number}: needs "question" with a text that is not blank')
        queries.append(Query(str(row.get("id", number)), text))
    if not queries:
        raise InputError(f"{path}: holds no question")
    return queries
