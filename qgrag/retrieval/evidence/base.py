"""What evidence is made of: items that brought a hit, and one record on the query as a whole.

A retriever fills these with its own classes; `to_dict` makes the JSON of a result out of them. docs/evidence.md
describes that JSON.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field, fields
from functools import cache
from typing import Any

from qgrag.retrieval.linking.link import Link


def in_memory(default: Any) -> Any:
    """A field such as the row of an entity: not in the JSON, not compared, not printed."""
    return field(default=default, compare=False, repr=False)


class Part:
    """Base of frozen dataclasses that become one JSON object.

    Fields made by `in_memory` stay out of it, and so does an optional field whose default is None while it is None.
    """

    __slots__ = ()

    def to_dict(self) -> dict[str, Any]:
        """Plain dicts, lists, strings and numbers."""
        cls: Any = type(self)
        values = ((name, getattr(self, name), optional) for name, optional in json_fields(cls))
        return {name: plain(value) for name, value, optional in values if not (optional and value is None)}


@cache
def json_fields(cls: type) -> tuple[tuple[str, bool], ...]:
    """The fields of a part's JSON in their order, and whether each may be left out: keyword-only fields come last."""
    shown = sorted((f for f in fields(cls) if f.compare), key=lambda f: bool(f.kw_only))
    return tuple((f.name, f.default is None) for f in shown)


def plain(value: Any) -> Any:
    """A value as JSON has it: parts as dicts, tuples as lists."""
    if isinstance(value, str | int | float):
        return value
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    if isinstance(value, Mapping):
        return {key: plain(one) for key, one in value.items()}
    return value.to_dict() if hasattr(value, "to_dict") else value


class Item(Part, ABC):
    """One reason for a hit. A subclass is a frozen dataclass with a `kind` of its own and, better, a `line`."""

    __slots__ = ()

    @property
    @abstractmethod
    def kind(self) -> str:
        """What the item is; the first member of its JSON."""

    @property
    def line(self) -> str:
        """The item in one line, for a person."""
        return ", ".join(f"{name} {value}" for name, value in Part.to_dict(self).items())

    def to_dict(self) -> dict[str, Any]:
        return {"kind": self.kind, **Part.to_dict(self)}


@dataclass(frozen=True, slots=True)
class View(Part):
    """A part of a graph as a reader sees it.

    Args:
        title: what the view is.
        lines: best first.
        note: how to read a line.
    """

    title: str
    lines: tuple[str, ...]
    note: str = ""


@dataclass(frozen=True, slots=True)
class Evidence(Part):
    """What a retriever tells of a query as a whole: nothing here, more in the record of each method.

    Args:
        fallback: why another method took over; None where none did.
        context: views for the reader, in place of those that `qgrag.generation.graph_views` makes of the record.
    """

    _: KW_ONLY
    fallback: str | None = None
    context: tuple[View, ...] | None = None

    @property
    def line(self) -> str:
        """The record in one line, for a person; empty where `qgrag.retrieval.evidence.explain` knows the type."""
        return ""


@dataclass(frozen=True, slots=True)
class GraphEvidence(Evidence):
    """Base of the records of methods that start at entities.

    Args:
        links: the entities of the query, in the order of its text.
    """

    links: tuple[Link, ...]


@dataclass(frozen=True, slots=True)
class OtherItem(Item):
    """An item read back whose kind or fields this package does not know.

    Args:
        kind: as the JSON has it.
        values: the other members.
    """

    kind: str
    values: Mapping[str, Any] = field(default_factory=dict)

    @property
    def line(self) -> str:
        return ", ".join(f"{name} {value}" for name, value in self.values.items())

    def to_dict(self) -> dict[str, Any]:
        return {"kind": self.kind, **plain(self.values)}


@dataclass(frozen=True, slots=True)
class OtherEvidence(Evidence):
    """A record read back whose fields this package does not know.

    Args:
        values: its members, `fallback` and `context` left out.
    """

    values: Mapping[str, Any] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        return {**plain(self.values), **Evidence(fallback=self.fallback, context=self.context).to_dict()}
