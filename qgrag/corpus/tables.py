"""The header rows of the tables in a text."""

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from markdown_it import MarkdownIt


MAX_HEADER_CHARACTERS = 500
MIN_ROWS = 3
_DELIMITER_ROW = re.compile(r"^[ \t>]*\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-*:?[ \t]*)+$", re.M)
_CELL_MARK = " | "


@dataclass(frozen=True, slots=True)
class Table:
    """Rows at characters `start` to `end - 1` of a text, below a header row."""

    start: int
    end: int
    header: str


def tables(text: str) -> list[Table]:
    """The tables of a text, in order: Markdown's, and rows of cells set apart by ' | ' as readers write them.

    Such rows count from `MIN_ROWS` in a row with equal numbers of cells; the first is the header. A header of more
    than `MAX_HEADER_CHARACTERS` characters is none. Linear in the text's length.
    """
    if "|" not in text:
        return []
    starts = [0, *(at.end() for at in re.finditer(r"\r\n?|\n", text))]
    lines = [text[a:b].rstrip("\r\n") for a, b in zip(starts, [*starts[1:], len(text)], strict=True)]
    spans = list(_markdown_tables(text)) if _DELIMITER_ROW.search(text) else []
    spans += [span for span in _rows_of_cells(lines) if not any(a < span[1] and span[0] < b for a, b in spans)]
    ends = [*starts[1:], len(text)]
    found = [Table(ends[first], ends[last - 1], lines[first].strip()) for first, last in sorted(spans)]
    return [table for table in found if len(table.header) <= MAX_HEADER_CHARACTERS]


def header_above(found: Sequence[Table], offset: int) -> str:
    """The header of the table in whose rows a character stands; empty where it stands in none."""
    at = bisect_right(found, offset, key=lambda table: table.start) - 1
    return found[at].header if at >= 0 and offset < found[at].end else ""


def _markdown_tables(text: str) -> Iterator[tuple[int, int]]:
    """(first line, one past the last) of each."""
    for token in _parser().parse(text):
        if token.type == "table_open" and token.map:
            yield token.map[0], token.map[1]


def _rows_of_cells(lines: Sequence[str]) -> Iterator[tuple[int, int]]:
    first = 0
    marks = [line.count(_CELL_MARK) for line in lines]
    for at in range(1, len(lines) + 1):
        if at == len(lines) or marks[at] != marks[first]:
            if marks[first] and at - first >= MIN_ROWS:
                yield first, at
            first = at


@lru_cache(maxsize=1)
def _parser() -> "MarkdownIt":
    from markdown_it import MarkdownIt

    return MarkdownIt("commonmark").enable("table").disable("inline")
