"""Training data of an embedding model: queries with texts that answer them and texts that do not."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from qgrag.files import write_json_lines
from qgrag.training.json_lines import read_lines, text_field, texts_field


@dataclass(frozen=True, slots=True)
class TrainingPair:
    """One line of a pair file: `{"query": ..., "pos": [...], "neg": [...]}`, the format that FlagEmbedding reads.

    Args:
        query: a question.
        pos: texts that answer it, at least one.
        neg: texts that do not; may be empty.
        pos_ids: ids of the documents of `pos`, or empty. Two texts of one document are never each other's
            negatives.
        neg_ids: the same for `neg`.
        group: what a split must not tear apart: a document, an article or a question.
    """

    query: str
    pos: tuple[str, ...]
    neg: tuple[str, ...] = ()
    pos_ids: tuple[str, ...] = ()
    neg_ids: tuple[str, ...] = ()
    group: str = ""

    def __post_init__(self) -> None:
        for texts, ids, name in ((self.pos, self.pos_ids, "pos"), (self.neg, self.neg_ids, "neg")):
            if ids and len(ids) != len(texts):
                raise ValueError(f'"{name}" has {len(texts)} texts but "{name}_ids" has {len(ids)}; give one for each')

    @classmethod
    def from_plain(cls, row: dict[str, Any]) -> "TrainingPair":
        """From a line's object; keys that are not known are left alone. ValueError says what is wrong."""
        group = row.get("group", "")
        if not isinstance(group, str):
            raise ValueError(f'"group" has to be a text, not {group!r}')
        return cls(
            text_field(row, "query"),
            texts_field(row, "pos", least=1),
            texts_field(row, "neg"),
            texts_field(row, "pos_ids"),
            texts_field(row, "neg_ids"),
            group,
        )

    def to_plain(self) -> dict[str, Any]:
        row: dict[str, Any] = {"query": self.query, "pos": list(self.pos), "neg": list(self.neg)}
        optional = {"pos_ids": list(self.pos_ids), "neg_ids": list(self.neg_ids), "group": self.group}
        return row | {key: value for key, value in optional.items() if value}


def read_pairs(path: str | Path) -> list[TrainingPair]:
    """All pairs of a file.

    Raises:
        InputError: names the file, the line and what is wrong with it.
    """
    return read_lines(Path(path), TrainingPair.from_plain)


def write_pairs(path: str | Path, pairs: Iterable[TrainingPair]) -> int:
    """Write a pair file; returns the number of pairs."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    return write_json_lines(path, (pair.to_plain() for pair in pairs))
