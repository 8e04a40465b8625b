"""Run a recipe: indexes, retrieval, answers, judgements, and the value of each cell of the table."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from qgrag.evaluation.answer_summary import AnswerSummary
from qgrag.evaluation.answering import AnswerRun, Judge, Measures, PairJudge, Writer, run_answers
from qgrag.evaluation.bootstrap import BootstrapConfig
from qgrag.evaluation.datasets.records import Dataset
from qgrag.evaluation.harness import run_evaluation
from qgrag.evaluation.meteor import Meteor
from qgrag.evaluation.reproduce.cells import Cell, cell_value, mean_cell
from qgrag.evaluation.reproduce.recipe import AVERAGE, Recipe, Row
from qgrag.evaluation.run_folder import RunFolder
from qgrag.index.builder import build_index
from qgrag.index.config import IndexConfig
from qgrag.index.reader import Index
from qgrag.retrieval.base import Retriever

INDEX_COSTS_FILE = "index-costs.jsonl"
KS = (1, 2, 5, 8, 10)


class Means(Protocol):
    """The models that a recipe runs with: real ones, or a smoke run's stand-ins."""

    def dataset(self, name: str) -> Dataset:
        """Its documents and the questions taken."""
        ...

    def index_config(self, name: str, dataset: str) -> IndexConfig: ...

    def index_folder(self, name: str, dataset: str, config: IndexConfig) -> str:
        """Name of the index's folder; equal names are one index."""
        ...

    def open_index(self, folder: Path, config: IndexConfig) -> Index: ...

    def retriever(self, index: Index, row: Row, dataset: str) -> Retriever: ...

    def writer(self, index: Index) -> Writer: ...

    @property
    def judge(self) -> Judge | None: ...

    @property
    def pair_judge(self) -> PairJudge | None: ...

    @property
    def meteor(self) -> Meteor | None: ...

    @property
    def names(self) -> Mapping[str, Any]:
        """Of the models, recorded with the run."""
        ...


@dataclass(frozen=True)
class RunPlaces:
    """Where a run lies.

    Args:
        out: its folder.
        indexes: folder of the indexes, which runs may share.
    """

    out: Path
    indexes: Path


def slug(method: str) -> str:
    """A file name for a method.

    >>> slug("QMKGF (ours)"), slug("w/o shortest path")
    ('QMKGF-ours', 'w-o-shortest-path')
    """
    return re.sub(r"[^A-Za-z0-9.+]+", "-", method.replace("--", "minus")).strip("-")


def run_recipe(
    recipe: Recipe,
    means: Means,
    places: RunPlaces,
    datasets: Sequence[str],
    *,
    bootstrap: BootstrapConfig | None = None,
    say: Callable[[str], None] = lambda text: None,
) -> dict[tuple[str, int], Cell]:
    """Make the table's cells, data set by data set; resumable by question.

    Args:
        recipe: the table.
        means: models and data.
        places: folders.
        datasets: those of the recipe that are run.
        bootstrap: of the intervals.
        say: told what is being done.

    Returns:
        By (method, column) what was measured; cells that nothing was measured for are absent, and averages where a
        data set of the recipe was not run.

    Raises:
        InputError: a folder holds a run of another recipe, index or model.
    """
    bootstrap = bootstrap or BootstrapConfig()
    measured: dict[tuple[str, int], list[Cell]] = {}
    for name in datasets:
        dataset = means.dataset(name)
        out = places.out / name
        out.mkdir(parents=True, exist_ok=True)
        say(f"{name}: {len(dataset.questions)} questions over {len(dataset.documents)} documents")
        config = {
            "recipe": f"{recipe.paper}, {recipe.table}",
            "indexes": {row.index: means.index_config(row.index, name).identity() for row in recipe.runnable},
            **means.names,
        }
        RunFolder(out).check_config(config)
        indexes = _build_indexes(recipe, means, places, name, dataset, say)
        retrievers = {slug(r.method): means.retriever(indexes[r.index], r, name) for r in recipe.runnable}
        summary = run_evaluation(
            dataset,
            retrievers,
            out,
            ks=KS,
            config=config,
            retriever_configs={slug(r.method): {**r.parameters(name), "index": r.index} for r in recipe.runnable},
            bootstrap=bootstrap,
            plot=False,
        )
        say(f"{name}: answering")
        answers = _answer(recipe, means, name, dataset, indexes, out, bootstrap)
        costs = _read_costs(out / INDEX_COSTS_FILE)
        timings = _timings(out)
        for number, column in enumerate(recipe.columns):
            if column.dataset not in (name, AVERAGE):
                continue
            for row in recipe.runnable:
                cell = cell_value(column, row, recipe, slug, summary, answers, costs, timings, len(dataset.questions))
                if cell is not None:
                    measured.setdefault((row.method, number), []).append(cell)
    wanted = [len(recipe.datasets) if column.dataset == AVERAGE else 1 for column in recipe.columns]
    return {key: mean_cell(parts) for key, parts in measured.items() if len(parts) == wanted[key[1]]}


def _build_indexes(
    recipe: Recipe, means: Means, places: RunPlaces, name: str, dataset: Dataset, say: Callable[[str], None]
) -> dict[str, Index]:
    indexes = {}
    for key in dict.fromkeys(row.index for row in recipe.runnable):
        config = means.index_config(key, name)
        folder = places.indexes / means.index_folder(key, name, config)
        say(f"{name}: index {key}")
        report = build_index(dataset.documents, folder, config)
        tokens = sum(step["prompt_tokens"] + step["completion_tokens"] for step in report.usage.values())
        line = {"index": key, "seconds": sum(report.seconds.values()), "tokens": tokens}
        if report.done:
            with (places.out / name / INDEX_COSTS_FILE).open("a", encoding="utf-8") as file:
                file.write(json.dumps(line) + "\n")
        indexes[key] = means.open_index(folder, config)
    return indexes


def _answer(
    recipe: Recipe,
    means: Means,
    name: str,
    dataset: Dataset,
    indexes: Mapping[str, Index],
    out: Path,
    bootstrap: BootstrapConfig,
) -> AnswerSummary:
    compares = any(metric.startswith("wins:") for metric in recipe.metrics)
    language = recipe.datasets[name].language
    measures = Measures(
        language,
        means.judge if "judge" in recipe.metrics else None,
        means.meteor if "meteor" in recipe.metrics and language == "en" else None,
        means.pair_judge if compares else None,
        slug(recipe.compare_with),
    )
    run = AnswerRun(
        config={"style": recipe.style, "passages": recipe.passages, "tokens": recipe.evidence_tokens, **means.names},
        bootstrap=bootstrap,
    )
    first = next(iter(indexes.values()))
    methods = [slug(row.method) for row in recipe.runnable]
    return run_answers(dataset, methods, out, means.writer(first), measures, run)


def _read_costs(path: Path) -> dict[str, dict[str, float]]:
    costs: dict[str, dict[str, float]] = {}
    for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else ():
        record = json.loads(line)
        total = costs.setdefault(record["index"], {"seconds": 0.0, "tokens": 0.0})
        total["seconds"] += record["seconds"]
        total["tokens"] += record["tokens"]
    return costs


def _timings(out: Path) -> dict[str, float]:
    """Seconds of retrieval and answers by retriever."""
    seconds: dict[str, float] = {}
    for line in (out / "timings.jsonl").read_text(encoding="utf-8").splitlines():
        record = json.loads(line)
        if record["stage"] in ("first", "retrieve", "answer"):
            seconds[record["retriever"]] = seconds.get(record["retriever"], 0.0) + record["seconds"]
    return seconds
