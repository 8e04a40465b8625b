"""Evidence out of JSON: the one place that looks at keys.

An item says its `kind`; a record is told by the names of its members.
"""

from collections.abc import Mapping
from dataclasses import MISSING, fields
from functools import cache
from types import UnionType
from typing import Any, get_args, get_origin, get_type_hints

from qgrag.errors import InputError
from qgrag.retrieval.evidence.base import Evidence, GraphEvidence, Item, OtherEvidence, OtherItem, Part, json_fields
from qgrag.retrieval.evidence.items import (
    DescriptionItem,
    PathItem,
    QuestionNodeItem,
    ReasonItem,
    RerankItem,
    SearchItem,
    TripleItem,
    VoteItem,
)
from qgrag.retrieval.evidence.records import (
    AutoEvidence,
    D2QEvidence,
    DualEvidence,
    EnsembleEvidence,
    FGEvidence,
    KGEvidence,
    QCGEvidence,
    QMKGFEvidence,
)
from qgrag.retrieval.linking.link import Link

ITEMS: dict[str, type[Item]] = {
    "question node": QuestionNodeItem,
    "triple": TripleItem,
    "path": PathItem,
    "description": DescriptionItem,
    "search": SearchItem,
    "vote": VoteItem,
    "rerank": RerankItem,
    "reason": ReasonItem,
}
RECORDS: tuple[type[Evidence], ...] = (
    Evidence,
    GraphEvidence,
    D2QEvidence,
    QCGEvidence,
    KGEvidence,
    DualEvidence,
    FGEvidence,
    QMKGFEvidence,
    EnsembleEvidence,
    AutoEvidence,
)
COMMON = frozenset({"fallback", "context"})


def item_from_dict(values: Mapping[str, Any]) -> Item:
    """The item that `Item.to_dict` made; rows of the index are lost.

    Args:
        values: with a `kind`; where the kind or the other members are unknown, an `OtherItem` holds them.

    Raises:
        InputError: there is no `kind`, or a part within has other members than it must.
    """
    if "kind" not in values:
        raise InputError(f"evidence: an item has no 'kind' among its members {', '.join(values) or '(none)'}")
    rest = {name: value for name, value in values.items() if name != "kind"}
    cls = ITEMS.get(values["kind"])
    return OtherItem(values["kind"], rest) if cls is None or not _fits(cls, rest) else _made(cls, rest)


def evidence_from_dict(values: Mapping[str, Any]) -> Evidence:
    """The record that `Evidence.to_dict` made; rows of the index are lost.

    Args:
        values: the members; an `OtherEvidence` holds those of a record that is not of this package.

    Raises:
        InputError: a part within has other members than it must.
    """
    for cls in RECORDS:
        if _fits(cls, values):
            return _made(cls, values)
    rest = {name: value for name, value in values.items() if name not in COMMON}
    return OtherEvidence(rest, **_members(Evidence, {name: values[name] for name in COMMON if name in values}))


def _fits(cls: Any, values: Mapping[str, Any]) -> bool:
    """Whether the members are those of the class, whatever is optional there or not."""
    names = {name for name, _ in json_fields(cls)}
    needed = {f.name for f in fields(cls) if f.compare and f.default is MISSING}
    return needed <= values.keys() <= names


def _made(cls: Any, values: Mapping[str, Any]) -> Any:
    if not _fits(cls, values):
        names = ", ".join(name for name, _ in json_fields(cls))
        raise InputError(f"evidence: a {cls.__name__} has the members {names}, not {', '.join(values)}")
    return cls(**_members(cls, values))


def _members(cls: type, values: Mapping[str, Any]) -> dict[str, Any]:
    hints = _hints(cls)
    return {name: _read(hints[name], value) for name, value in values.items()}


@cache
def _hints(cls: type) -> dict[str, Any]:
    return get_type_hints(cls)


def _read(hint: Any, value: Any) -> Any:
    """A member's value as the field's type wants it."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is UnionType:
        return None if value is None else _read(arguments[0], value)
    if origin is tuple:
        return tuple(_read(arguments[0], one) for one in value)
    if origin is Mapping:
        return {name: _read(arguments[1], one) for name, one in value.items()}
    if hint is Evidence:
        return evidence_from_dict(value)
    if hint is Item or (isinstance(hint, type) and issubclass(hint, Item)):
        return item_from_dict(value)
    if hint is Link or (isinstance(hint, type) and issubclass(hint, Part)):
        return _made(hint, value)
    return value
