"""Where the data of an experiment come from: one data set, or several that a file names."""

import re
from dataclasses import dataclass
from pathlib import Path

from qgrag.config import from_plain, load_yaml, unknown_name
from qgrag.errors import ConfigError, InputError
from qgrag.evaluation.datasets.loading import DATASETS, load_dataset, locate
from qgrag.evaluation.datasets.records import Dataset, sample_questions

SET_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]*")
RESERVED = "mean"


@dataclass(frozen=True)
class DataSource:
    """Where the documents and questions of an experiment come from.

    Args:
        dataset: one of `qgrag.evaluation.datasets.DATASETS`.
        data: folder of the publisher's files, or the corpus itself; `demo` needs none.
        questions: question file that replaces the data set's own.
        split: the split whose questions are asked, for formats that have one question file per split.
        index: folder of an index of the corpus, which is read as it is; None builds one in the folder of the run.
        limit: number of questions drawn by `seed`; None takes all.
        seed: of the draw.
    """

    dataset: str = "demo"
    data: Path | None = None
    questions: Path | None = None
    split: str | None = None
    index: Path | None = None
    limit: int | None = None
    seed: int = 0

    def check(self) -> None:
        """Look for the files, and read none of them.

        Raises:
            InputError: the data set is unknown, or a file or the index is not there.
        """
        if self.dataset not in DATASETS:
            raise InputError(unknown_name("data set", self.dataset, DATASETS))
        locate(self.dataset, self.data, self.questions, self.split)
        if self.index is not None and not self.index.is_dir():
            raise InputError(f"{self.index}: no such folder; build an index there with qgrag index")

    def load(self) -> Dataset:
        """Read the data set and draw its questions.

        Raises:
            InputError: as `load_dataset`, or `limit` is below 1.
        """
        dataset = load_dataset(self.dataset, self.data, self.questions, self.split)
        return dataset if self.limit is None else sample_questions(dataset, self.limit, seed=self.seed)


def load_sets(path: Path, seed: int = 0) -> dict[str, DataSource]:
    """The data sets of a YAML file, {NAME: fields of `DataSource`}.

    Args:
        path: YAML file.
        seed: of the draw of questions, where a set names none.

    Raises:
        ConfigError: the file cannot be read, holds no set, or has a name, key or value that is wrong.
        InputError: files of a set are not there.
    """
    sources: dict[str, DataSource] = {}
    for name, values in load_yaml(path).items():
        where = f"{path}, set {name!r}"
        if not SET_NAME.fullmatch(str(name)) or name == RESERVED:
            raise ConfigError(
                f"{where}: the name names a folder, so use letters, digits and ._+- only, and not {RESERVED!r}"
            )
        if not isinstance(values, dict) or "dataset" not in values:
            raise ConfigError(f"{where}: expected keys and values with a key 'dataset', not {values!r}")
        sources[str(name)] = from_plain(DataSource, {"seed": seed, **values}, where=where)
    if not sources:
        raise ConfigError(f"{path}: holds no data set")
    for source in sources.values():
        source.check()
    return sources
