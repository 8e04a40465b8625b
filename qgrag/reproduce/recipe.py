"""Recipes: a YAML file holds one results table of a paper, with its columns, models, sizes and numbers."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal

from qgrag.config import from_plain, load_yaml, unknown_name
from qgrag.errors import ConfigError
from qgrag.evaluation.answers.metrics import ANSWER_METRICS, Language
from qgrag.evaluation.datasets.records import How
from qgrag.evaluation.metrics import metric_names
from qgrag.evaluation.runs.summary import OVERALL
from qgrag.generation.pairwise import CRITERIA
from qgrag.llm.config import LLMConfig

KS = (1, 2, 5, 8, 10)
RETRIEVAL = tuple(metric_names(KS))
JUDGE, METEOR = "judge", "meteor"
WINS = tuple(f"wins:{criterion}" for criterion in CRITERIA)
MINUTES = ("minutes:construction", "minutes:answers", "minutes:total")
TOKENS = ("tokens:construction", "tokens:answers")
KNOWN = (*ANSWER_METRICS, JUDGE, METEOR, *WINS, *MINUTES, *TOKENS, *RETRIEVAL)
AVERAGE = "average"
LANGUAGE_MARK = "{language}"
DATASET_MARK = "{dataset}"


@dataclass(frozen=True)
class Column:
    """One column: what is measured on which questions.

    Args:
        dataset: key of `Recipe.datasets`; `average` for the unweighted mean over all of them.
        metric: one of `KNOWN`: an answer or retrieval metric; `wins:CRITERION`, the share that `Recipe.compare_with`
            wins over the row; `minutes:` of building the index, of retrieval and answers, or of both; `tokens:` of
            building, or of retrieval and answers, for all questions. An answer from the model's cache costs nothing.
            So of several rows that ask the same only the first one pays, and what a stopped batch had asked is not
            counted.
        group: type of question, or `overall`.

    Raises:
        ConfigError: the metric is unknown.
    """

    dataset: str = ""
    metric: str = ""
    group: str = OVERALL

    def __post_init__(self) -> None:
        if self.metric not in KNOWN:
            raise ConfigError(unknown_name("a column's metric", self.metric, KNOWN))

    @property
    def heading(self) -> str:
        """For tables."""
        parts = (self.dataset, self.group if self.group != OVERALL else "", self.metric)
        return " ".join(part for part in parts if part)


@dataclass(frozen=True)
class DataSpec:
    """One data set of a table.

    Args:
        format: of `qgrag.evaluation.datasets.DATASETS`.
        folder: of the publisher's files, below the folder of all data sets.
        questions: a question file in it, where it is not the publisher's own.
        sample: questions taken; None takes all.
        how: the first ones, or drawn by `seed`.
        per_type: `sample` questions of each type.
        seed: of the draw.
        pool: the corpus: `all` passages of the files, or those that come with the questions taken (`sampled`), for
            formats that give passages with each question.
        one_text: whether the passages are joined to one document, so that chunks cross their ends. Retrieval cannot be
            measured then.
        language: of questions and answers.
        get: where the files come from.
    """

    format: str = "jsonl"
    folder: str = ""
    questions: str = ""
    sample: int | None = None
    how: How = "random"
    per_type: bool = False
    seed: int = 0
    pool: Literal["all", "sampled"] = "all"
    one_text: bool = False
    language: Language = "en"
    get: str = ""


@dataclass(frozen=True)
class Row:
    """One method of a table.

    Args:
        method: as the paper calls it.
        retriever: `retriever` and its parameters, as in configs/retrieval; None for software that is not part of
            this project, whose published numbers are shown all the same.
        for_dataset: data set to parameters that differ there.
        index: name of the index that it runs on.
        published: the paper's numbers, one per column; null where it gives none. Empty where none is known.
    """

    method: str = ""
    retriever: dict[str, Any] | None = None
    for_dataset: dict[str, dict[str, Any]] = field(default_factory=dict)
    index: str = "base"
    published: tuple[float | None, ...] = ()

    @property
    def slug(self) -> str:
        """Its name in a run."""
        return slug(self.method)

    def parameters(self, dataset: str) -> dict[str, Any]:
        """`retriever` and its parameters for one data set; a copy."""
        values: dict[str, Any] = filled({**(self.retriever or {}), **self.for_dataset.get(dataset, {})}, dataset)
        return values


@dataclass(frozen=True)
class NeededFile:
    """A file that has to be made before; `how` says by which command. Both may hold `{dataset}` and `{language}`."""

    path: str = ""
    how: str = ""


@dataclass(frozen=True)
class Recipe:
    """How one results table is made.

    Args:
        paper: short name.
        table: as the paper numbers it.
        about: one sentence.
        source: where the numbers were read.
        notes: where the paper is silent or what is done in another way.
        llm: the model that extracts, takes retrieval's steps, and answers.
        llm_steps: whether it takes retrieval's steps.
        judge: the model that judges; None where the table needs none.
        judge_is_reader: whether `judge` is the model that answers, so that another reader is also another judge.
        serve: command that serves the model.
        style: of answers.
        passages: read by the reader.
        evidence_tokens: most tokens that it gets.
        compare_with: method whose answers are compared with every other row's.
        datasets: by name.
        indexes: by name, what differs from `IndexConfig`'s defaults; strings may hold `{dataset}` and `{language}`.
        needs: files to be made before.
        columns: of the table.
        rows: of the table.
    """

    paper: str = ""
    table: str = ""
    about: str = ""
    source: str = ""
    notes: tuple[str, ...] = ()
    llm: LLMConfig = field(default_factory=LLMConfig)
    llm_steps: bool = True
    judge: LLMConfig | None = None
    judge_is_reader: bool = False
    serve: str = ""
    style: Literal["short", "long"] = "short"
    passages: int = 5
    evidence_tokens: int = 6000
    compare_with: str = ""
    datasets: dict[str, DataSpec] = field(default_factory=dict)
    indexes: dict[str, dict[str, Any]] = field(default_factory=dict)
    needs: tuple[NeededFile, ...] = ()
    columns: tuple[Column, ...] = ()
    rows: tuple[Row, ...] = ()

    def __post_init__(self) -> None:
        for column in self.columns:
            if column.dataset not in (*self.datasets, AVERAGE):
                raise ConfigError(unknown_name("a column's data set", column.dataset, self.datasets))
            wanted = self.datasets.values() if column.dataset == AVERAGE else [self.datasets[column.dataset]]
            if column.metric in RETRIEVAL and any(spec.one_text for spec in wanted):
                raise ConfigError(f"column {column.heading!r}: a corpus that is one text has nothing to be found in it")
            if column.metric == JUDGE and self.judge is None:
                raise ConfigError(f"column {column.heading!r}: the recipe names no judge")
            if column.metric in WINS and not (self.compare_with and self.judge):
                raise ConfigError(f"column {column.heading!r}: the recipe names no judge, or no method in compare_with")
        methods = [row.method for row in self.rows]
        for row in self.rows:
            if row.retriever is not None and row.index not in self.indexes:
                raise ConfigError(unknown_name(f"row {row.method!r}: index", row.index, self.indexes))
            if row.published and len(row.published) != len(self.columns):
                raise ConfigError(
                    f"row {row.method!r} has {len(row.published)} published numbers for {len(self.columns)} columns"
                )
        if len(set(methods)) != len(methods):
            raise ConfigError("two rows have the same method")
        if self.compare_with and self.compare_with not in methods:
            raise ConfigError(unknown_name("compare_with", self.compare_with, methods))

    @property
    def runnable(self) -> tuple[Row, ...]:
        """Rows of methods that are here."""
        return tuple(row for row in self.rows if row.retriever is not None)

    @property
    def metrics(self) -> set[str]:
        return {column.metric for column in self.columns}

    def index_values(self, name: str, dataset: str) -> dict[str, Any]:
        """What differs from `IndexConfig`'s defaults in an index of one data set; a copy."""
        values: dict[str, Any] = filled(self.indexes[name], dataset, self.datasets[dataset].language)
        return values


def slug(method: str) -> str:
    """A file name for a method.

    >>> slug("QMKGF (ours)"), slug("w/o shortest path")
    ('QMKGF-ours', 'w-o-shortest-path')
    """
    return re.sub(r"[^A-Za-z0-9.+]+", "-", method.replace("--", "minus")).strip("-")


def recipe_folder() -> Path:
    """Folder of the recipes that come with the package; in a checkout configs/reproduce is the same."""
    return Path(str(files("qgrag.reproduce").joinpath("recipes")))


def recipe_names() -> list[str]:
    """Names of the recipes that come with the package."""
    return sorted(path.stem for path in recipe_folder().glob("*.yaml"))


def load_recipe(name: str) -> Recipe:
    """A recipe by its name, or from the YAML file of that path.

    Raises:
        ConfigError: no such recipe, or one that is not valid.
    """
    path = Path(name) if name.endswith((".yaml", ".yml")) else recipe_folder() / f"{name}.yaml"
    if not path.is_file():
        raise ConfigError(unknown_name("recipe", name, recipe_names()))
    return from_plain(Recipe, load_yaml(path), where=path.name)


def filled(values: Any, dataset: str, language: Language = "en") -> Any:
    """Nested plain values with `{dataset}` and `{language}` replaced."""
    if isinstance(values, str):
        return values.replace(DATASET_MARK, dataset).replace(LANGUAGE_MARK, language)
    if isinstance(values, Mapping):
        return {key: filled(value, dataset, language) for key, value in values.items()}
    if isinstance(values, list | tuple):
        return [filled(value, dataset, language) for value in values]
    return values
