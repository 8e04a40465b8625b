"""CSV and TSV, with the names of the columns in the first row."""

import csv
import io
from collections.abc import Sequence

from qgrag.corpus.decoding import Unreadable
from qgrag.corpus.readers.fields import ID_FIELDS, TEXT_FIELDS, TITLE_FIELDS, metadata_of
from qgrag.corpus.readers.source import Entries, Entry, Source
from qgrag.corpus.readers.text import decode_text
from qgrag.corpus.records import Document

_MAX_CELL = 2**27


def read_csv(source: Source) -> Entries:
    """Rows with commas, semicolons, tabs or bars between their cells: see `_documents`."""
    text = decode_text(source)
    yield from _documents(source, text, _delimiter(text))


def read_tsv(source: Source) -> Entries:
    """Rows with tabs between their cells: see `_documents`."""
    yield from _documents(source, decode_text(source), "\t")


def _documents(source: Source, text: str, delimiter: str) -> Entries:
    """One document per row where a column is named like a text field of JSON, else one document for the file.

    A row's id is that of its `id` column, else the file's name and the number of the row. In the document of a file
    each row is a line `name: value; name: value`, so that a piece of it can be read without the first row.
    """
    rows = _rows(text, delimiter)
    names = [name.strip() for name in rows[0][1]] if rows else []
    column = next((field for field in TEXT_FIELDS if field in names), None)
    if column is None:
        lines = "\n".join(filter(None, (_line(names, cells) for _, cells in rows[1:])))
        yield Entry("", Document(source.name, lines, metadata={"source": source.name}))
        return
    for number, (line, cells) in enumerate(rows[1:], start=1):
        record = {name: cell for name, cell in zip(names, cells, strict=False) if name and cell}
        identity = next((record[name] for name in ID_FIELDS if name in record), f"{source.name}/{number}")
        title = next((record[name] for name in TITLE_FIELDS if name in record), "")
        document = Document(identity, record.get(column, ""), title, metadata_of(record, source.name))
        yield Entry(f"line {line}", document)


def _rows(text: str, delimiter: str) -> list[tuple[int, list[str]]]:
    """(number of its last line, cells) of each row that is not empty."""
    csv.field_size_limit(_MAX_CELL)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    try:
        return [(reader.line_num, cells) for cells in reader if any(cell.strip() for cell in cells)]
    except csv.Error as error:
        raise Unreadable(f"broken table: {error}", f"line {reader.line_num}") from error


def _delimiter(text: str) -> str:
    """The one that cuts the first line into most cells; a comma where none cuts it."""
    first = text.lstrip().partition("\n")[0]
    return max(",;\t|", key=lambda mark: len(next(csv.reader([first], delimiter=mark), [])))


def _line(names: Sequence[str], cells: Sequence[str]) -> str:
    padded = [*names, *[""] * (len(cells) - len(names))]
    values = [(name, " ".join(cell.split())) for name, cell in zip(padded, cells, strict=False)]
    return "; ".join(f"{name}: {value}" if name else value for name, value in values if value)
