"""The file that says what an index is: `manifest.json`, the last thing that a build writes."""

import re
from collections.abc import Callable
from dataclasses import MISSING, asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from qgrag.errors import IndexFormatError
from qgrag.index.storage import read_json, write_json

FORMAT = "qgrag-index"
VERSION = 1
MANIFEST = "manifest.json"
MAX_BYTES = 16 * 2**20
MAX_TEXT = 4096

Check = Callable[[object], bool]


@dataclass(frozen=True, slots=True)
class Manifest:
    """What an index holds and what made it.

    Args:
        generation: folder inside the index that holds the current files.
        config: the `IndexConfig` that built it, as nested plain values.
        embedder: `name`, `fingerprint` and `dimension` of the embedding model.
        extractors: fingerprint of what made the question-answer pairs and the facts, by kind.
        counts: documents, chunks, nodes, edges by name.
        seconds: time of each stage of the last build.
        usage: LLM calls and tokens by step, summed over all builds.
        extraction: what was counted in extracting from the chunks that are in the index (dropped, repaired), by kind.
        files: size and checksum of each file of the generation.
        qgrag: the version of the package that wrote it.
    """

    generation: str
    config: dict[str, Any]
    embedder: dict[str, Any]
    extractors: dict[str, str]
    counts: dict[str, int]
    seconds: dict[str, float]
    files: dict[str, dict[str, Any]]
    qgrag: str
    usage: dict[str, Any] = field(default_factory=dict)
    extraction: dict[str, dict[str, int]] = field(default_factory=dict)
    format: str = FORMAT
    version: int = VERSION


def write_manifest(folder: Path, manifest: Manifest) -> None:
    write_json(folder / MANIFEST, asdict(manifest))


def read_manifest(folder: Path) -> Manifest:
    """Read and check `folder/manifest.json`.

    Raises:
        IndexFormatError: no index there, a foreign or damaged manifest, or one of a newer format.
    """
    path = folder / MANIFEST
    if not folder.is_dir():
        raise IndexFormatError(f"{folder}: no such folder; build an index there with: qgrag index DOCS --out {folder}")
    if not path.is_file():
        raise IndexFormatError(
            f"{folder}: holds no {MANIFEST}, so it is no index, or one whose first build has not finished; "
            f"run: qgrag index DOCS --out {folder}"
        )
    size = path.stat().st_size
    if size > MAX_BYTES:
        raise IndexFormatError(f"{path}: {size} bytes, more than the {MAX_BYTES} that a manifest may have")
    raw = read_json(path)
    if not isinstance(raw, dict) or raw.get("format") != FORMAT:
        raise IndexFormatError(f"{path}: not a qgrag index (its 'format' is not {FORMAT!r})")
    if type(raw.get("version")) is not int or not 1 <= raw["version"] <= VERSION:
        raise IndexFormatError(
            f"{path}: format version {raw.get('version')!r}, but this qgrag reads up to {VERSION}; upgrade qgrag"
        )
    missing = {f.name for f in fields(Manifest) if f.default_factory is MISSING} - set(raw)
    if missing:
        raise IndexFormatError(f"{path}: lacks {', '.join(sorted(missing))}; the manifest is damaged")
    manifest = Manifest(**{f.name: raw[f.name] for f in fields(Manifest) if f.name in raw})
    if problem := _problem(manifest):
        raise IndexFormatError(f"{path}: {problem}; the manifest is damaged or was changed by hand")
    return manifest


def _problem(manifest: Manifest) -> str:
    """The first value of a wrong type or size, or the first unsafe name; empty if there is none."""
    if not isinstance(manifest.generation, str) or not re.fullmatch(r"g[0-9]{1,12}", manifest.generation):
        return f"'generation' {_short(manifest.generation)} is not a plain folder name such as g000001"
    for name in ("config", "embedder", "extractors", "counts", "seconds", "files", "usage", "extraction"):
        if not isinstance(value := getattr(manifest, name), dict):
            return f"'{name}' has to be an object, not {_short(value)}"
    wanted: dict[str, Check] = {"name": _is_text, "fingerprint": _is_text, "dimension": _is_count}
    for key, check in wanted.items():
        if not check(manifest.embedder.get(key)):
            return f"'embedder' has no usable {key!r}: {_short(manifest.embedder.get(key))}"
    if not _is_text(manifest.qgrag):
        return f"'qgrag' has to be a version, not {_short(manifest.qgrag)}"
    flat: dict[str, Check] = {"extractors": _is_text, "counts": _is_count, "seconds": _is_number}
    for name, check in flat.items():
        for key, value in getattr(manifest, name).items():
            if not check(value):
                return f"'{name}' holds {_short(value)} for {_short(key)}"
    nested: dict[str, Check] = {"usage": _is_number, "extraction": _is_count}
    for name, check in nested.items():
        for key, values in getattr(manifest, name).items():
            if not isinstance(values, dict) or not all(map(check, values.values())):
                return f"'{name}' holds {_short(values)} for {_short(key)}"
    for name, entry in manifest.files.items():
        if not _is_inside(name):
            return f"'files' names {_short(name)}, which lies outside the index or is no file's name"
        if not isinstance(entry, dict) or not _is_count(entry.get("bytes")) or not _is_text(entry.get("blake2b")):
            return f"'files' needs 'bytes' and 'blake2b' for {name!r}, not {_short(entry)}"
    return ""


def _is_text(value: object) -> bool:
    return isinstance(value, str) and len(value) <= MAX_TEXT


def _is_count(value: object) -> bool:
    return type(value) is int and 0 <= value < 2**63


def _is_number(value: object) -> bool:
    return type(value) in (int, float) and 0 <= value < float("inf")  # type: ignore[operator]


def _is_inside(name: str) -> bool:
    parts = name.split("/")
    return len(name) <= MAX_TEXT and name.isprintable() and "\\" not in name and not {"", ".", ".."} & set(parts)


def _short(value: object) -> str:
    return repr(value)[:80]
