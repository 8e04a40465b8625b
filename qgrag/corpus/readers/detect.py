"""Which format a file has: by its first bytes where they tell, else by its name."""

import io
import json
import zipfile
from collections.abc import Callable
from pathlib import PurePosixPath

from qgrag.corpus.decoding import Unreadable, find_encoding
from qgrag.corpus.readers.docx import read_docx
from qgrag.corpus.readers.html import read_html
from qgrag.corpus.readers.json_lines import read_json_lines
from qgrag.corpus.readers.json_list import WRAPPER, read_json_list
from qgrag.corpus.readers.lihuaworld import read_lihuaworld
from qgrag.corpus.readers.markdown import read_markdown
from qgrag.corpus.readers.pdf import read_pdf
from qgrag.corpus.readers.source import Entries, Source
from qgrag.corpus.readers.squad import read_squad
from qgrag.corpus.readers.table import read_csv, read_tsv
from qgrag.corpus.readers.text import read_code, read_rst, read_text

READERS: dict[str, Callable[[Source], Entries]] = {
    "text": read_text,
    "markdown": read_markdown,
    "rst": read_rst,
    "code": read_code,
    "html": read_html,
    "pdf": read_pdf,
    "docx": read_docx,
    "csv": read_csv,
    "tsv": read_tsv,
    "jsonl": read_json_lines,
    "json": read_json_list,
    "squad": read_squad,
    "lihuaworld": read_lihuaworld,
}
_CODE = (
    "c cc clj cpp cs css cxx dart erl ex exs f90 fs go groovy h hpp hs java jl js jsx kt lisp lua m ml mjs pas php pl "
    "proto ps1 py pyi r rb rs scala scss sh sql svelte swift tf ts tsx vue zig"
)
FOLDER_SUFFIXES = {
    ".txt": "text",
    ".md": "markdown",
    ".markdown": "markdown",
    ".html": "html",
    ".htm": "html",
    ".pdf": "pdf",
    ".docx": "docx",
    ".rst": "rst",
    ".csv": "csv",
    ".tsv": "tsv",
    **{f".{suffix}": "code" for suffix in _CODE.split()},
}
"""Formats of the files that are read as a part of a folder."""

COLLECTION_SUFFIXES = {".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "json", ".zip": "lihuaworld"}
_HEAD_BYTES = 2**16


def detect_format(source: Source) -> str:
    """The name in `READERS` of the format of `source`.

    Raises:
        Unreadable: if neither its bytes nor its name tell.
    """
    if source.data.startswith(b"%PDF-"):
        return "pdf"
    if source.data.startswith(b"PK\x03\x04"):
        return "docx" if _is_docx(source.data) else "lihuaworld"
    suffix = PurePosixPath(source.name).suffix.lower()
    if suffix in FOLDER_SUFFIXES:
        return FOLDER_SUFFIXES[suffix]
    if suffix in (".json", ".jsonl", ".ndjson"):
        return _detect_json(source, COLLECTION_SUFFIXES[suffix])
    if suffix in COLLECTION_SUFFIXES:
        return COLLECTION_SUFFIXES[suffix]
    raise Unreadable(f"no reader for {suffix or 'files without a suffix'}; name the format: {', '.join(READERS)}")


def _is_docx(data: bytes) -> bool:
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            return "word/document.xml" in archive.namelist()
    except zipfile.BadZipFile:
        return b"word/" in data[:_HEAD_BYTES]


def _detect_json(source: Source, by_name: str) -> str:
    """A list, SQuAD's object, or one object per line; where the head does not tell, the name decides."""
    encoding, skip = find_encoding(source.data, source.encoding)
    head = source.data[skip : skip + _HEAD_BYTES].decode(encoding, "replace").lstrip()
    if head.startswith("["):
        return "json"
    first_line, _, rest = head.partition("\n")
    try:
        record = json.loads(first_line)
    except (json.JSONDecodeError, RecursionError):
        return "squad" if '"paragraphs"' in head else by_name
    if not isinstance(record, dict):
        return by_name
    if rest.strip():
        return "jsonl"
    if isinstance(record.get("data"), list):
        return "squad"
    return "json" if isinstance(record.get(WRAPPER), list) else "jsonl"
