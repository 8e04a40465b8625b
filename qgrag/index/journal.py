"""Finished batches of an unfinished build, so that a killed run goes on where it stopped."""

import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path

import pyarrow as pa

from qgrag.index.storage import read_json, read_table, write_json, write_table
from qgrag.llm.usage import Usages

USAGE = "usage.json"
SCHEMA = pa.schema([("key", pa.string()), ("payload", pa.binary())])


class Journal:
    """Append-only store of keyed payloads: one Parquet file a batch, each written whole.

    Args:
        folder: made when the first batch is written.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def append(self, kind: str, entries: Iterable[tuple[str, bytes]]) -> None:
        """Store a batch under `kind` (letters, digits and dashes; it names the files)."""
        rows = list(entries)
        if not rows:
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        number = len(list(self.folder.glob(f"{kind}.*.parquet")))
        write_table(
            self.folder / f"{kind}.{number:06d}.parquet",
            {"key": [key for key, _ in rows], "payload": [payload for _, payload in rows]},
            SCHEMA,
        )

    def read(self, kind: str) -> Iterator[tuple[str, bytes]]:
        """Everything stored under `kind`, oldest first."""
        for path in sorted(self.folder.glob(f"{kind}.*.parquet")):
            table = read_table(path)
            yield from zip(table["key"].to_pylist(), table["payload"].to_pylist())

    def write_usage(self, usage: Usages) -> None:
        """Keep what the runs of this build have spent so far, by step, in place of what was kept before."""
        self.folder.mkdir(parents=True, exist_ok=True)
        write_json(self.folder / USAGE, usage)

    def read_usage(self) -> Usages:
        path = self.folder / USAGE
        return read_json(path) if path.is_file() else {}

    def clear(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)
