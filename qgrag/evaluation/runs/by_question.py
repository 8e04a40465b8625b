"""Work that is done question by question, kept as it goes, with what failed before done anew."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from qgrag.evaluation.runs.run_folder import RunFolder
from qgrag.progress import progress

Record = Mapping[str, Any]


def complete_records(
    folder: RunFolder,
    name: str,
    pattern: str,
    ids: Sequence[str],
    make: Callable[[Sequence[int]], Sequence[Record]],
    failed: Callable[[int, Record], bool],
    *,
    batch: int,
    title: str,
) -> list[Record]:
    """A record of every question: those on disk, those of them that failed made anew, and the rest.

    Args:
        folder: of the run; has each batch on disk before the next one begins.
        name: in the file's name.
        pattern: of the file's name.
        ids: of the questions, in order.
        make: positions of questions -> their records, each with its question's `id`.
        failed: whether a record on disk, of the question at a position, is to be made anew.
        batch: questions a call of `make`.
        title: of the progress bar.

    Raises:
        InputError: as `RunFolder.results`.
    """
    records: list[Record] = list(folder.results(name, ids, pattern))
    again = [position for position, record in enumerate(records) if failed(position, record)]
    with progress(title, len(again) + len(ids) - len(records)) as bar:
        for part in _batches(again, batch):
            for position, record in zip(part, make(part), strict=True):
                records[position] = record
            folder.replace_results(name, records, pattern)
            bar.advance(len(part))
        for part in _batches(range(len(records), len(ids)), batch):
            made = make(part)
            folder.append_results(name, made, pattern)
            records += made
            bar.advance(len(part))
    return records


def _batches(positions: Sequence[int], batch: int) -> Iterator[Sequence[int]]:
    for start in range(0, len(positions), batch):
        yield positions[start : start + batch]
