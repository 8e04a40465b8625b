"""The folder of one evaluation run: settings, records that grow batch by batch, a lock against another writer."""

import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from qgrag.errors import InputError
from qgrag.files import append_json_lines, read_json_lines, whole_file, write_json_lines
from qgrag.progress import progress

SETTINGS_FILE = "run.json"
TIMINGS_FILE = "timings.jsonl"
SUMMARY_FILE = "summary.json"
RESULTS_PATTERN = "results-{}.jsonl"
ANSWERS_PATTERN = "answers-{}.jsonl"
VERDICTS_PATTERN = "verdicts-{}.jsonl"
COMPARISONS_PATTERN = "comparisons-{}.jsonl"
LOCK_FILE = ".lock"
RETRIEVER_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]*")
Record = Mapping[str, Any]


class RunFolder:
    """Files of one run; open it with `open_run`, which holds the lock.

    Layout: `run.json` (settings), `results-RETRIEVER.jsonl` (one line per question, in the data set's order) and
    `timings.jsonl` (one line per batch and stage). Answers lie in `answers-RETRIEVER.jsonl`, judgements in
    `verdicts-RETRIEVER.jsonl` and `comparisons-A-vs-B.jsonl`, and each of these kinds has its own `KIND-run.json`.
    Lines are appended; only what failed is ever replaced.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def settle(self, settings: Mapping[str, Any], file: str = SETTINGS_FILE) -> dict[str, Any]:
        """Record the settings of a new run, or check that they continue the run that is here.

        Retrievers may join a run; everything else, the settings of its retrievers included, has to be the
        same.

        Args:
            settings: JSON-serialisable, with the settings of each retriever by name under `retrievers`.
            file: name of the file that holds them.

        Returns:
            The settings of the run, with all retrievers that ever joined it.

        Raises:
            InputError: the folder holds a run with other settings, or results without settings.
        """
        for name in settings["retrievers"]:
            if not RETRIEVER_NAME.fullmatch(name):
                raise InputError(f"retriever name {name!r} names a file, so use letters, digits and ._+- only")
        wanted: dict[str, Any] = json.loads(json.dumps(settings))
        recorded = self.recorded(file)
        if (self.path / file).is_file():
            self._refuse(_differences(recorded, wanted))
            wanted["retrievers"] = recorded["retrievers"] | wanted["retrievers"]
        if wanted != recorded:
            write_json(self.path / file, wanted)
        return wanted

    def recorded(self, file: str = SETTINGS_FILE) -> dict[str, Any]:
        """The settings in one of the files that `settle` writes; empty if it has not been written.

        Raises:
            InputError: the file is broken, or results are here without settings.
        """
        path = self.path / file
        if path.is_file():
            try:
                recorded: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
            except ValueError as error:
                raise InputError(
                    f"{path}: not the settings of a run ({error}); choose another folder (--out)"
                ) from error
            return recorded
        if file != SETTINGS_FILE:
            return {}
        if (self.path / SUMMARY_FILE).exists() or any(self.path.glob(RESULTS_PATTERN.format("*"))):
            raise InputError(f"{self.path}: holds results but no {SETTINGS_FILE}; choose another folder (--out)")
        return {}

    def check(self, settings: Mapping[str, Mapping[str, Any]]) -> None:
        """Raise InputError where a run is here whose settings differ in one of the keys given, section by section."""
        recorded = self.recorded()
        for section, values in settings.items():
            there = recorded.get(section, {})
            wanted = json.loads(json.dumps(values))
            shared = wanted.keys() & there.keys()
            self._refuse(
                _differences({key: there[key] for key in shared}, {key: wanted[key] for key in shared}, f"{section}.")
            )

    def _refuse(self, differences: Iterable[str]) -> None:
        different = list(differences)
        if different:
            raise InputError(
                f"{self.path}: holds a run with other settings ({'; '.join(different[:5])}); "
                "repeat those to continue it, or choose another folder (--out)"
            )

    def results(
        self, retriever: str, question_ids: Sequence[str], pattern: str = RESULTS_PATTERN
    ) -> list[dict[str, Any]]:
        """What this retriever has finished: one record per question. A line that a kill cut off is removed.

        Args:
            retriever: name in the file's name.
            question_ids: of the whole run, in order.
            pattern: of the file's name.

        Raises:
            InputError: the file's questions are not the first of `question_ids`, or a line is broken.
        """
        path = self.path / pattern.format(retriever)
        records = self.all_results(retriever, pattern)
        ids = [record.get("id") for record in records]
        if ids != list(question_ids[: len(ids)]):
            raise InputError(f"{path}: its questions are not those of this run; choose another folder (--out)")
        return records

    def all_results(self, retriever: str, pattern: str = RESULTS_PATTERN) -> list[dict[str, Any]]:
        """What this retriever has finished, whatever the questions; a line that a kill cut off is removed.

        Raises:
            InputError: a line is broken.
        """
        return _read_appended(self.path / pattern.format(retriever))

    def append_results(
        self, retriever: str, records: Sequence[Mapping[str, Any]], pattern: str = RESULTS_PATTERN
    ) -> None:
        """Add finished questions; they are on disk when this returns."""
        append_json_lines(self.path / pattern.format(retriever), records)

    def replace_results(self, retriever: str, records: Sequence[Mapping[str, Any]], pattern: str) -> None:
        """Write a file of finished questions anew, whole or not at all."""
        write_json_lines(self.path / pattern.format(retriever), records)

    def append_timing(self, stage: str, seconds: float, **labels: Any) -> None:
        """Add the seconds that a stage took, with what they were for (`retriever`, `questions`)."""
        append_json_lines(self.path / TIMINGS_FILE, [{"stage": stage, "seconds": seconds, **labels}])

    def timings(self) -> list[dict[str, Any]]:
        """Every timing of the run and its continuations."""
        return _read_appended(self.path / TIMINGS_FILE)


@contextmanager
def open_run(path: Path) -> Iterator[RunFolder]:
    """Make the folder if need be and hold its lock.

    Raises:
        InputError: it is a file, or another process holds the lock.
    """
    if path.exists() and not path.is_dir():
        raise InputError(f"{path}: is a file; results need a folder (--out)")
    path.mkdir(parents=True, exist_ok=True)
    lock = FileLock(path / LOCK_FILE)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        raise InputError(f"{path}: another process is writing here; wait for it or choose another folder") from None
    try:
        yield RunFolder(path)
    finally:
        lock.release()


def write_json(path: Path, value: Mapping[str, Any]) -> None:
    """Write a JSON file whole or not at all."""
    with whole_file(path) as aside:
        aside.write_text(json.dumps(value, indent=2, allow_nan=False) + "\n", encoding="utf-8")


def _read_appended(path: Path) -> list[dict[str, Any]]:
    if not path.exists():
        return []
    content = path.read_bytes()
    whole = content.rfind(b"\n") + 1
    if whole < len(content):
        os.truncate(path, whole)
    try:
        return [record for _, record in read_json_lines(path)]
    except InputError as error:
        raise InputError(f"{error}; delete the file to begin anew") from error


def _differences(recorded: Mapping[str, Any], wanted: Mapping[str, Any], prefix: str = "") -> Iterator[str]:
    """Leaves that differ, as text; retrievers that only one side has are no difference."""
    for key in recorded.keys() | wanted.keys() if prefix != "retrievers." else recorded.keys() & wanted.keys():
        there, now = recorded.get(key), wanted.get(key)
        if isinstance(there, Mapping) and isinstance(now, Mapping):
            yield from _differences(there, now, f"{prefix}{key}.")
        elif there != now:
            yield f"{prefix}{key} is {there!r} there and {now!r} now"


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
    """One record per question: those on disk are kept, those that failed are made anew, the rest are made.

    Args:
        folder: of the run. Each batch is on disk before the next one begins.
        name: in the file's name.
        pattern: of the file's name.
        ids: of the questions, in order.
        make: from positions of questions to their records, each with its question's `id`.
        failed: whether the record on disk of the question at a position has to be made anew.
        batch: number of questions per call of `make`.
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
