"""Questions to be asked, from a JSON lines file."""

from dataclasses import dataclass
from pathlib import Path

from qgrag.corpus.decoding import Unreadable, decode_lines
from qgrag.corpus.searchable import is_blank
from qgrag.errors import InputError
from qgrag.files import json_object


@dataclass(frozen=True, slots=True)
class Query:
    """A question and the id under which its result is reported."""

    id: str
    text: str


def read_queries(path: Path) -> list[Query]:
    """Read JSON lines with `question` (or `query`) and, optionally, `id`; a line without an id has its number as id.

    Raises:
        InputError: names the file, the line and what is wrong with it.
    """
    try:
        lines = list(decode_lines(path.read_bytes()))
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from error
    except Unreadable as error:
        raise InputError(f"{path}: {error.reason}; save it as UTF-8") from error
    queries = []
    for number, line in lines:
        if isinstance(line, Unreadable):
            raise InputError(f"{path}, line {number}: {line.reason}; save it as UTF-8")
        if not line.strip():
            continue
        row = json_object(line, f"{path}, line {number}")
        text = row.get("question", row.get("query"))
        if not isinstance(text, str) or is_blank(text):
            raise InputError(f'{path}, line {number}: needs "question" with a text that is not blank')
        queries.append(Query(str(row.get("id", number)), text))
    if not queries:
        raise InputError(f"{path}: holds no question")
    return queries
