"""Running a sweep, resumable point by point."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from qgrag.config import from_plain
from qgrag.errors import InputError
from qgrag.evaluation.bootstrap import BootstrapConfig
from qgrag.evaluation.datasets.records import Dataset
from qgrag.evaluation.runs.harness import BatchRetriever, run_evaluation
from qgrag.evaluation.runs.run_folder import RunFolder
from qgrag.evaluation.sweep.points import Point, Sweep, copied, file_name
from qgrag.evaluation.sweep.rows import Measured, Row, sweep_rows, write_points
from qgrag.index.builder import build_index
from qgrag.index.config import IndexConfig
from qgrag.index.reader import Index
from qgrag.progress import progress
from qgrag.retrieval.registry import load_retriever, retriever_settings
from qgrag.retrieval.results import RetrievalResult

POINTS_FILE = "points.parquet"


class _Asked:
    """The retriever of a point whose questions were all asked before."""

    def retrieve(self, queries: Sequence[str], top_k: int) -> list[RetrievalResult]:
        raise NotImplementedError("there is nothing left to ask")


def run_sweep(
    sweep: Sweep,
    dataset: Dataset,
    out: Path,
    *,
    ks: Sequence[int],
    indexes: Path | None = None,
    bootstrap: BootstrapConfig | None = None,
    say: Callable[[str], None] = lambda text: None,
) -> list[Row]:
    """Measure every point and compare it with the base of its line. What was measured before is read.

    There is one index for each way to cut and embed passages. It is brought from the configuration of one point to that
    of the next, so that texts are embedded once. Points that are measured need no index.

    Args:
        sweep: the points.
        dataset: documents and questions.
        out: folder of the sweep. Each `POINT/` in it is a run of `run_evaluation`; `points.parquet` has all figures.
        ks: cut-offs of the metrics.
        indexes: folder of the indexes, which sweeps over one data set may share; `out` if not given.
        bootstrap: of the intervals.
        say: told what is being done.

    Returns:
        One row per point and group (see `qgrag.evaluation.sweep.rows.Row`), in the order of the sweep's values.

    Raises:
        ConfigError: a parameter or value of a point is unknown or out of range.
        InputError: two points would have one name, or a folder holds another run.
    """
    bootstrap = bootstrap or BootstrapConfig()
    points = list(sweep.points())
    labels = [point.label for point in points]
    if len(set(labels)) != len(labels):
        raise InputError(f"sweep {sweep.name!r}: two points are called {max(labels, key=labels.count)!r}")
    ids = [question.id for question in dataset.questions]
    measured: dict[str, Measured] = {}
    opened: tuple[str, Index] | None = None
    with progress(f"Sweeping {sweep.x}", len(points)) as bar:
        for point in points:
            config = from_plain(IndexConfig, point.index, where=f"sweep {sweep.name!r}, index")
            settings = retriever_settings(**_named(point))
            folder = out / point.label
            retriever: BatchRetriever = _Asked()
            if len(RunFolder(folder).results(point.label, ids)) < len(ids):
                if opened is None or opened[0] != point.index_key:
                    say(f"{sweep.name}: index for {point.label}")
                    index = (indexes or out) / _index_name(config)
                    build_index(dataset.documents, index, config)
                    opened = (point.index_key, Index.open(index))
                retriever = load_retriever(opened[1], **_named(point))
            summary = run_evaluation(
                dataset,
                {point.label: retriever},
                folder,
                ks=ks,
                seed=bootstrap.seed,
                config={"index": config.identity(), "point": {"retriever": point.retriever}},
                retriever_configs={point.label: settings},
                bootstrap=bootstrap,
                plot=False,
            )
            measured[point.label] = Measured(summary, RunFolder(folder).results(point.label, ids))
            bar.advance()
    rows = sweep_rows(sweep, points, measured, dataset.questions, bootstrap)
    write_points(rows, out / POINTS_FILE)
    return rows


def _named(point: Point) -> dict[str, Any]:
    """The retriever's name and parameters, as `load_retriever` takes them."""
    values = copied(point.retriever)
    return {"name": values.pop("retriever"), **values}


def _index_name(config: IndexConfig) -> str:
    chunks = config.chunks
    return f"index-{file_name(config.embedder.model)}-{config.embedder.window}-{chunks.tokens}-{chunks.overlap}"
