"""What building an index has cost over all its runs, stopped ones included. The record lies beside the index."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from qgrag.corpus.records import Document
from qgrag.files import append_json_lines, read_json_lines
from qgrag.index.builder import build_index
from qgrag.index.config import IndexConfig
from qgrag.index.manifest import read_manifest
from qgrag.models.embedder import Embedder


@dataclass(frozen=True, slots=True)
class IndexCosts:
    """Of one index.

    Args:
        seconds: of all runs that built the index; None if not known, because it was built elsewhere or a run was
            killed before it could write them.
        tokens: of the language model's prompts and answers, as the index's manifest sums them.
    """

    seconds: float | None
    tokens: float


def build_timed(
    documents: Sequence[Document], folder: Path, config: IndexConfig, embedder: Embedder | None = None
) -> None:
    """`build_index`. Its seconds are written to `FOLDER.seconds.jsonl`, whether or not it ends well."""
    path = _record(folder)
    path.parent.mkdir(parents=True, exist_ok=True)
    append_json_lines(path, [{"event": "began"}])
    began = time.perf_counter()
    built = True
    try:
        built = build_index(documents, folder, config, embedder=embedder).done
    finally:
        append_json_lines(path, [{"event": "ended", "built": built, "seconds": time.perf_counter() - began}])


def index_costs(folder: Path) -> IndexCosts:
    """What the index in `folder` has cost.

    Raises:
        IndexFormatError: there is none.
    """
    path = _record(folder)
    runs = [run for _, run in read_json_lines(path)] if path.exists() else []
    spent = [run["seconds"] for run in runs if run["event"] == "ended" and run["built"]]
    killed = sum(run["event"] == "began" for run in runs) - sum(run["event"] == "ended" for run in runs)
    usage = read_manifest(folder).usage.values()
    return IndexCosts(
        None if killed or not spent else sum(spent),
        sum(step["prompt_tokens"] + step["completion_tokens"] for step in usage),
    )


def _record(folder: Path) -> Path:
    return folder.with_name(f"{folder.name}.seconds.jsonl")
