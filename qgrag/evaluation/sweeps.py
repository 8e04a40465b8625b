"""Sweeps: one retriever measured over ranges of its parameters and its index's, resumable point by point."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from qgrag.config import from_plain
from qgrag.errors import ConfigError, InputError
from qgrag.evaluation.bootstrap import BootstrapConfig
from qgrag.evaluation.datasets.records import Dataset
from qgrag.evaluation.harness import run_evaluation, settings_of
from qgrag.evaluation.summary import Summary
from qgrag.index.builder import build_index
from qgrag.index.config import IndexConfig
from qgrag.index.reader import Index
from qgrag.progress import progress
from qgrag.retrieval.base import Retriever
from qgrag.retrieval.registry import load_retriever

INDEX_PREFIX = "index."
POINTS_FILE = "points.parquet"


@dataclass(frozen=True)
class Sweep:
    """Which parameters take which values; one panel of a figure.

    Args:
        name: of the sweep; names its files.
        x: parameter along the axis: a field of the retriever's configuration, or `index.` and the dotted path of a
            field of `IndexConfig`, such as `index.query_graph.alpha`.
        values: of `x`.
        series: a second parameter, a line for each value; empty for one line.
        series_values: of `series`.
        retriever: `retriever` and its parameters, where they differ from the retriever's defaults.
        index: what differs from `IndexConfig`'s defaults.
    """

    name: str = ""
    x: str = ""
    values: tuple[Any, ...] = ()
    series: str = ""
    series_values: tuple[Any, ...] = ()
    retriever: dict[str, Any] = field(default_factory=lambda: {"retriever": "qcg"})
    index: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if bool(self.series) != bool(self.series_values):
            raise ConfigError(f"sweep {self.name!r}: series and series_values belong together")
        if "retriever" not in self.retriever:
            raise ConfigError(f"sweep {self.name!r}: retriever lacks the key 'retriever', which names one")

    def points(self) -> Iterator["Point"]:
        """Every combination, those that share an index one after the other.

        Raises:
            ConfigError: there is no name, parameter or value.
        """
        if not self.name or not self.x or not self.values:
            raise ConfigError("a sweep needs a name, a parameter x and its values")
        pairs = list(product(self.values, self.series_values or (None,)))
        points = [self._point(value, serie) for value, serie in pairs]
        order = {point.index_key: number for number, point in reversed(list(enumerate(points)))}
        yield from sorted(points, key=lambda point: order[point.index_key])

    def _point(self, value: Any, serie: Any) -> "Point":
        index: dict[str, Any] = copied(self.index)
        retriever: dict[str, Any] = copied(self.retriever)
        for name, chosen in ((self.x, value), (self.series, serie)):
            if not name:
                continue
            if name.startswith(INDEX_PREFIX):
                set_path(index, name.removeprefix(INDEX_PREFIX), chosen)
            else:
                set_path(retriever, name, chosen)
        return Point(value, serie, index, retriever)


@dataclass(frozen=True)
class Point:
    """One combination of a sweep."""

    value: Any
    serie: Any
    index: dict[str, Any]
    retriever: dict[str, Any]

    @property
    def index_key(self) -> str:
        return repr(sorted(self.index.items(), key=str))

    @property
    def label(self) -> str:
        """Name of its files."""
        return "-".join(_plain(part) for part in (self.value, self.serie) if part is not None)


def run_sweep(
    sweep: Sweep,
    dataset: Dataset,
    out: Path,
    *,
    ks: Sequence[int],
    indexes: Path | None = None,
    bootstrap: BootstrapConfig | None = None,
    load: Callable[[Index, Point], Retriever] | None = None,
    say: Callable[[str], None] = lambda text: None,
) -> list[dict[str, Any]]:
    """Measure every point; what was measured before is read, not measured again.

    One index is kept for each way to cut and embed passages, and brought from one point's configuration to the next
    one's, so that texts are embedded once.

    Args:
        sweep: the points.
        dataset: documents and questions.
        out: folder of the sweep; `POINT/` is a run of `run_evaluation` each, `points.parquet` has all figures.
        ks: cut-offs of the metrics.
        indexes: folder of the indexes, which sweeps over one data set may share; `out` if not given.
        bootstrap: of the intervals.
        load: an open index and a point to its retriever; by its name, if not given.
        say: told what is being done.

    Returns:
        A row a point and group: `sweep`, `x`, `value`, `series`, `serie`, `group`, `questions`, and each metric with
        `METRIC_low` and `METRIC_high`.
    """
    points = list(sweep.points())
    labels = [point.label for point in points]
    if len(set(labels)) != len(labels):
        raise InputError(f"sweep {sweep.name!r}: two points are called {max(labels, key=labels.count)!r}")
    rows: list[dict[str, Any]] = []
    opened: tuple[str, Index] | None = None
    with progress(f"Sweeping {sweep.x}", len(points)) as bar:
        for point in points:
            config = from_plain(IndexConfig, point.index, where=f"sweep {sweep.name!r}, index")
            if opened is None or opened[0] != point.index_key:
                say(f"{sweep.name}: index for {point.label}")
                folder = (indexes or out) / _index_name(config)
                build_index(dataset.documents, folder, config)
                opened = (point.index_key, Index.open(folder))
            retriever = (load or load_point)(opened[1], point)
            summary = run_evaluation(
                dataset,
                {point.label: retriever},
                out / point.label,
                ks=ks,
                config={"index": config.identity(), "point": {"retriever": point.retriever}},
                retriever_configs={point.label: settings_of(retriever)},
                bootstrap=bootstrap,
                plot=False,
            )
            rows += _rows(sweep, point, summary)
            bar.advance()
    rows.sort(key=lambda row: (labels_order(sweep, row), row["group"]))
    pq.write_table(pa.Table.from_pylist([{k: _cell(k, v) for k, v in row.items()} for row in rows]), out / POINTS_FILE)
    return rows


def load_point(index: Index, point: Point) -> Retriever:
    """The retriever of a point by its name."""
    parameters = copied(point.retriever)
    name = parameters.pop("retriever")
    return load_retriever(index, name, **parameters)


def labels_order(sweep: Sweep, row: Mapping[str, Any]) -> tuple[int, int]:
    """Place of a row in the order of the sweep's own values."""
    serie = sweep.series_values.index(row["serie"]) if sweep.series else 0
    return serie, sweep.values.index(row["value"])


def set_path(values: dict[str, Any], path: str, value: Any) -> None:
    """Set a nested value by its dotted path, making the mappings on the way."""
    *parents, last = path.split(".")
    for name in parents:
        values = values.setdefault(name, {})
    values[last] = value


def copied(values: Mapping[str, Any]) -> dict[str, Any]:
    """Nested mappings anew; other values are shared."""
    return {key: copied(value) if isinstance(value, Mapping) else value for key, value in values.items()}


def _rows(sweep: Sweep, point: Point, summary: Summary) -> list[dict[str, Any]]:
    rows = []
    for group, figures in summary.retrievers[point.label].items():
        row: dict[str, Any] = {
            "sweep": sweep.name,
            "x": sweep.x,
            "value": point.value,
            "series": sweep.series,
            "serie": point.serie,
            "group": group,
            "questions": summary.counts[group]["measured"],
        }
        for metric, mean in figures.items():
            low, high = summary.intervals[point.label][group][metric]
            row |= {metric: mean, f"{metric}_low": low, f"{metric}_high": high}
        rows.append(row)
    return rows


def _cell(column: str, value: Any) -> Any:
    return None if value is None else str(value) if column in ("value", "serie") else value


def _plain(value: Any) -> str:
    """A value as a part of a file name."""
    text = str(value).rsplit("/", 1)[-1]
    return "".join(c if c.isalnum() or c in "._" else "_" for c in text)


def _index_name(config: IndexConfig) -> str:
    chunks = config.chunks
    return f"index-{_plain(config.embedder.model)}-{config.embedder.window}-{chunks.tokens}-{chunks.overlap}"


def with_device(sweep: Sweep, device: str) -> Sweep:
    """The sweep with its embedding on a device."""
    index = copied(sweep.index)
    set_path(index, "embedder.device", device)
    return replace(sweep, index=index)
