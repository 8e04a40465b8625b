"""What a sweep measures: one retriever over ranges of its parameters and its index's."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any

from qgrag.config import from_plain
from qgrag.errors import ConfigError

INDEX_PREFIX = "index."


@dataclass(frozen=True)
class Sweep:
    """Which parameters take which values; one panel of a figure.

    Args:
        name: of the sweep; names its files.
        x: parameter along the axis: a field of the retriever's configuration, or `index.` and the dotted path of a
            field of `IndexConfig`, such as `index.query_graph.alpha`.
        values: of `x`.
        series: a second parameter, with one line per value; empty for one line.
        series_values: of `series`.
        retriever: `retriever` and its parameters, where they differ from the retriever's defaults.
        index: what differs from `IndexConfig`'s defaults.
        base: the value that the others are compared with, question by question; the first if not given.
    """

    name: str = ""
    x: str = ""
    values: tuple[Any, ...] = ()
    series: str = ""
    series_values: tuple[Any, ...] = ()
    retriever: dict[str, Any] = field(default_factory=lambda: {"retriever": "qcg"})
    index: dict[str, Any] = field(default_factory=dict)
    base: Any = None

    def __post_init__(self) -> None:
        if bool(self.series) != bool(self.series_values):
            raise ConfigError(f"sweep {self.name!r}: series and series_values belong together")
        if self.base is not None and self.base not in self.values:
            raise ConfigError(f"sweep {self.name!r}: base {self.base!r} is none of the values of {self.x}")
        if "retriever" not in self.retriever:
            raise ConfigError(f"sweep {self.name!r}: retriever lacks the key 'retriever', which names one")

    @property
    def base_value(self) -> Any:
        """The value of `x` that the others are compared with."""
        return self.values[0] if self.base is None else self.base

    def points(self) -> Iterator["Point"]:
        """Every combination, those that share an index one after the other.

        Raises:
            ConfigError: there is no name, parameter or value.
        """
        if not self.name or not self.x or not self.values:
            raise ConfigError("a sweep needs a name, a parameter x and its values")
        pairs = list(product(self.values, self.series_values or (None,)))
        points = [self._point(value, line) for value, line in pairs]
        order = {point.index_key: number for number, point in reversed(list(enumerate(points)))}
        yield from sorted(points, key=lambda point: order[point.index_key])

    def _point(self, value: Any, line: Any) -> "Point":
        index: dict[str, Any] = copied(self.index)
        retriever: dict[str, Any] = copied(self.retriever)
        for name, chosen in ((self.x, value), (self.series, line)):
            if not name:
                continue
            if name.startswith(INDEX_PREFIX):
                set_path(index, name.removeprefix(INDEX_PREFIX), chosen)
            else:
                set_path(retriever, name, chosen)
        label = "-".join(map(file_name, (value, line) if self.series else (value,)))
        return Point(label, value, line, index, retriever)


@dataclass(frozen=True)
class Point:
    """One combination of a sweep.

    Args:
        label: name of its files.
        value: of `Sweep.x`.
        series_value: of `Sweep.series`; None where there is none.
        index: what differs from `IndexConfig`'s defaults.
        retriever: `retriever` and its parameters.
    """

    label: str
    value: Any
    series_value: Any
    index: dict[str, Any]
    retriever: dict[str, Any]

    @property
    def index_key(self) -> str:
        return repr(sorted(self.index.items(), key=str))


def named_sweeps(values: dict[str, Any], where: str) -> list[Sweep]:
    """The sweeps of a configuration file.

    Raises:
        ConfigError: it has none, or one of them is not valid.
    """
    unknown = sorted(set(values) - {"title", "metric", "group", "sweeps"})
    if unknown:
        raise ConfigError(f"{where}: key {unknown[0]!r} is unknown; known are title, metric, group, sweeps")
    if not values.get("sweeps"):
        raise ConfigError(f"{where}: names no sweeps")
    return [from_plain(Sweep, sweep, where=f"{where}, sweep {n}") for n, sweep in enumerate(values["sweeps"], start=1)]


def with_device(sweep: Sweep, device: str) -> Sweep:
    """The sweep with its embedding on a device."""
    index = copied(sweep.index)
    set_path(index, "embedder.device", device)
    return replace(sweep, index=index)


def set_path(values: dict[str, Any], path: str, value: Any) -> None:
    """Set a nested value by its dotted path, making the mappings on the way."""
    *parents, last = path.split(".")
    for name in parents:
        values = values.setdefault(name, {})
    values[last] = value


def copied(values: Mapping[str, Any]) -> dict[str, Any]:
    """Nested mappings anew; other values are shared."""
    return {key: copied(value) if isinstance(value, Mapping) else value for key, value in values.items()}


def file_name(value: Any) -> str:
    """A value as a part of a file name that begins with a letter or digit.

    >>> file_name(-0.5), file_name(""), file_name("x/all-MiniLM"), file_name({"pairs": 5})
    ('minus0.5', 'empty', 'all-MiniLM', 'pairs_5')
    """
    text = re.sub(r"^-(?=[0-9.])", "minus", str(value).rsplit("/", 1)[-1])
    text = re.sub(r"[^A-Za-z0-9._+-]+", "_", text).strip("_-.+")
    return text or "empty"
