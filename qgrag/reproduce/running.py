"""Run a recipe: indexes, retrieval, answers, judgements, and the value of each cell of the table."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from qgrag.evaluation.answers.answering import AnswerRun, Judge, Measures, PairJudge, Writer, run_answers
from qgrag.evaluation.answers.metrics import Meteor
from qgrag.evaluation.answers.summary import AnswerSummary
from qgrag.evaluation.bootstrap import BootstrapConfig
from qgrag.evaluation.datasets.records import Dataset
from qgrag.evaluation.runs.harness import dataset_settings, run_evaluation
from qgrag.evaluation.runs.run_folder import ANSWERS_PATTERN, RunFolder
from qgrag.evaluation.runs.summary import total_timings
from qgrag.index.config import IndexConfig
from qgrag.index.reader import Index
from qgrag.models.embedder import Embedder
from qgrag.reproduce.cells import Cell, Measured, cell_value, mean_cell
from qgrag.reproduce.costs import build_timed, index_costs
from qgrag.reproduce.recipe import AVERAGE, JUDGE, KS, METEOR, WINS, Recipe, Row, slug
from qgrag.retrieval.base import Retriever


class Materials(Protocol):
    """The models that a recipe runs with: real ones, or a smoke run's stand-ins."""

    def dataset(self, name: str) -> Dataset:
        """Its documents and the questions taken."""
        ...

    @property
    def embedder(self) -> Embedder | None:
        """What embeds texts; None for the model that an index's configuration names."""
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
        """Of the models, `model` and `judge` among them, recorded with the run."""
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


def run_recipe(
    recipe: Recipe,
    materials: Materials,
    places: RunPlaces,
    datasets: Sequence[str],
    *,
    bootstrap: BootstrapConfig | None = None,
    say: Callable[[str], None] = lambda text: None,
) -> dict[tuple[str, int], Cell]:
    """Make the table's cells, data set by data set; resumable by question.

    Args:
        recipe: the table.
        materials: models and data.
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
    cells: dict[tuple[str, int], list[Cell]] = {}
    for name in datasets:
        dataset = materials.dataset(name)
        out = places.out / name
        out.mkdir(parents=True, exist_ok=True)
        say(f"{name}: {len(dataset.questions)} questions over {len(dataset.documents)} documents")
        keys = dict.fromkeys(row.index for row in recipe.runnable)
        index_configs = {key: materials.index_config(key, name) for key in keys}
        config = {
            "recipe": f"{recipe.paper}, {recipe.table}",
            "indexes": {key: index_config.identity() for key, index_config in index_configs.items()},
            "corpus": {"pool": recipe.datasets[name].pool, "one_text": recipe.datasets[name].one_text},
            **materials.names,
        }
        RunFolder(out).check({"dataset": dataset_settings(dataset), "config": config})
        indexes = _build_indexes(index_configs, materials, places, name, dataset, say)
        retrievers = {r.slug: materials.retriever(indexes[r.index], r, name) for r in recipe.runnable}
        summary = run_evaluation(
            dataset,
            retrievers,
            out,
            ks=KS,
            config=config,
            retriever_configs={r.slug: {**r.parameters(name), "index": r.index} for r in recipe.runnable},
            bootstrap=bootstrap,
            plot=False,
        )
        say(f"{name}: answering")
        answers = _answer(recipe, materials, name, dataset, indexes, out, bootstrap)
        costs = {key: index_costs(index.path) for key, index in indexes.items()}
        timings = total_timings(RunFolder(out).timings())["retrievers"]
        measured = Measured(summary, answers, timings, costs)
        for number, column in enumerate(recipe.columns):
            if column.dataset not in (name, AVERAGE):
                continue
            for row in recipe.runnable:
                cell = cell_value(column, row, recipe, measured)
                if cell is not None:
                    cells.setdefault((row.method, number), []).append(cell)
    wanted = [len(recipe.datasets) if column.dataset == AVERAGE else 1 for column in recipe.columns]
    return {key: mean_cell(parts) for key, parts in cells.items() if len(parts) == wanted[key[1]]}


def failed_answers(recipe: Recipe, out: Path, datasets: Sequence[str]) -> list[str]:
    """Answers of a run that failed, one sentence each; the same run asks for them again."""
    return [
        f"answer from {row.method} to question {record['id']} of {name}: {record['error']}"
        for name in datasets
        for row in recipe.runnable
        for record in RunFolder(out / name).all_results(row.slug, ANSWERS_PATTERN)
        if record["error"]
    ]


def _build_indexes(
    configs: Mapping[str, IndexConfig],
    materials: Materials,
    places: RunPlaces,
    name: str,
    dataset: Dataset,
    say: Callable[[str], None],
) -> dict[str, Index]:
    indexes = {}
    for key, config in configs.items():
        folder = places.indexes / materials.index_folder(key, name, config)
        say(f"{name}: index {key}")
        build_timed(dataset.documents, folder, config, materials.embedder)
        indexes[key] = materials.open_index(folder, config)
    return indexes


def _answer(
    recipe: Recipe,
    materials: Materials,
    name: str,
    dataset: Dataset,
    indexes: Mapping[str, Index],
    out: Path,
    bootstrap: BootstrapConfig,
) -> AnswerSummary:
    compares = not recipe.metrics.isdisjoint(WINS)
    language = recipe.datasets[name].language
    measures = Measures(
        language,
        materials.judge if JUDGE in recipe.metrics else None,
        materials.meteor if METEOR in recipe.metrics and language == "en" else None,
        materials.pair_judge if compares else None,
        slug(recipe.compare_with),
    )
    run = AnswerRun(
        config={
            "style": recipe.style,
            "passages": recipe.passages,
            "tokens": recipe.evidence_tokens,
            **materials.names,
        },
        bootstrap=bootstrap,
        judge_config={"judge": materials.names["judge"]},
    )
    first = next(iter(indexes.values()))
    methods = [row.slug for row in recipe.runnable]
    return run_answers(dataset, methods, out, materials.writer(first), measures, run)
