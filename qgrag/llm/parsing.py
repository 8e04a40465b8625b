"""From an answer's text to a valid value of a pydantic schema, or an error to show to the model."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, get_args, get_origin

import json_repair
from pydantic import BaseModel, TypeAdapter, ValidationError

from qgrag.llm.records import SchemaT

MAX_DEPTH = 64
MAX_ERRORS_SHOWN = 3
_FENCE = re.compile(r"```(?:json\w*)?[ \t]*\n?(?=\s*[{\[｛［])|(?<=[}\]｝］\s])```", re.I)
_JSON_START = re.compile(r"[{\[｛［]")
_ASCII = str.maketrans("｛｝［］，：＂", '{}[],:"')
_CLOSES = {'"': '"', "'": "'", "“": "“”", "”": "“”"}
_AFTER_STRING = re.compile(r"\s*(?:[,:}\]，：｝］]|\Z)")


@dataclass(frozen=True, slots=True)
class Parsed:
    """A valid value, or why there is none.

    Args:
        value: an instance of the schema, None beside an error.
        error: what does not fit, in words that a model can act on; empty with a value.
        dropped: items of lists that did not validate and were left out.
        repaired: the text was not valid JSON as it came.
    """

    value: BaseModel | None = None
    error: str = ""
    dropped: int = 0
    repaired: bool = False


def parse_answer(text: str, schema: type[SchemaT], truncated: bool = False) -> Parsed:
    """Read a value of `schema` from a model's answer. Never raises, whatever the text.

    JSON may be bare, in code fences, in a string or between words. It is repaired where it is cut off or slightly
    wrong, also with the brackets, commas and quotation marks of Chinese text. A bare list, or single items, are taken
    for a schema whose only required field is a list. Of several values the last one that fits counts: it corrects
    those before it. List items are validated one by one, so that a bad one costs only itself. What was being written
    when the text broke off is left out. Where items came and none is valid, that is an error.

    Args:
        text: the answer, without reasoning.
        schema: what it has to be.
        truncated: the backend says that the answer ended at the token limit.
    """
    try:
        found = list(_values(text, schema, truncated))
    except _Unreadable as problem:
        return Parsed(error=str(problem))
    if not found:
        return Parsed(error="the answer holds no JSON")
    fitting = [value for value in found if _fits(value.data, schema)]
    with_items = [value for value in fitting if not _is_empty(value.data, schema)]
    outcomes = []
    for value in reversed(with_items or fitting or found[:1]):
        outcome = _validated(value, schema)
        if outcome.value is not None or value.breaks_off:
            return outcome
        outcomes.append(outcome)
    return outcomes[0]


@dataclass(frozen=True, slots=True)
class _Value:
    """A JSON value of an answer.

    Args:
        data: the object that was meant.
        repaired: its text was no JSON, or other text stood around it.
        breaks_off: its text ends before its last bracket.
        dropped: 1 where something that was being written then was left out.
        has_whole: something was written whole before that.
    """

    data: Any
    repaired: bool = True
    breaks_off: bool = False
    dropped: int = 0
    has_whole: bool = True


def _validated(value: _Value, schema: type[BaseModel]) -> Parsed:
    data, repaired = value.data, value.repaired
    if not isinstance(data, dict):
        return Parsed(error=f"expected a JSON object, got {_kind(data)}", repaired=repaired)
    if not value.has_whole:
        return Parsed(error="the answer breaks off in its first item", dropped=1, repaired=True)
    dropped = value.dropped
    cleaned = dict(data)
    for name, item_type in _list_fields(schema).items():
        if name not in data:
            continue
        kept, bad = _valid_items(_items(data[name]), item_type, f"{name}.")
        if bad and not kept:
            return Parsed(error="; ".join(bad[:MAX_ERRORS_SHOWN]), dropped=len(bad), repaired=repaired)
        cleaned[name] = kept
        dropped += len(bad)
    try:
        return Parsed(schema.model_validate(cleaned), dropped=dropped, repaired=repaired)
    except ValidationError as error:
        return Parsed(error=describe(error), dropped=dropped, repaired=repaired)


def describe(error: ValidationError, prefix: str = "") -> str:
    """A validation error in one line: the first few fields and what is wrong with them."""
    parts = [
        f"{prefix}{'.'.join(str(step) for step in e['loc'])}: {e['msg']}".replace(".:", ":")
        for e in error.errors(include_url=False, include_input=False, include_context=False)[:MAX_ERRORS_SHOWN]
    ]
    return "; ".join(parts)


@cache
def json_schema(schema: type[BaseModel]) -> Mapping[str, Any]:
    """The JSON schema as strict endpoints want it: no extra properties, every property required, no
    defaults."""
    return _strict(schema.model_json_schema())


class _Unreadable(Exception):
    pass


def _values(text: str, schema: type[BaseModel], truncated: bool) -> Iterator[_Value]:
    """The JSON values in a text, each as the object that was meant; single items one after another are one list."""
    body = text.strip()
    if not body:
        raise _Unreadable("the answer is empty")
    try:
        data = json.loads(body)
        if not isinstance(data, str):
            yield _Value(_as_object(_within_depth(data), schema), repaired=False)
            return
        body = data
    except (ValueError, RecursionError):
        pass
    items: list[Any] = []
    problem = None
    readable = False
    for region in _regions(body):
        try:
            value = _value(region, truncated)
        except _Unreadable as error:
            problem = problem or error
            continue
        readable = True
        if not value.breaks_off and _is_item(value.data, schema):
            items.append(value.data)
            continue
        if items:
            yield _Value(_as_object(items, schema))
            items = []
        yield replace(value, data=_as_object(value.data, schema))
    if items:
        yield _Value(_as_object(items, schema))
    if problem and not readable:
        raise problem


@dataclass(frozen=True, slots=True)
class _Region:
    """Text from an opening bracket to the one that closes it, or to the end.

    Args:
        text: with the brackets, commas, colons and quotation marks of JSON.
        closed: it ends with its closing bracket.
        whole: the text up to its last whole field, or whole item of a list that is not inside of an item.
    """

    text: str
    closed: bool
    whole: str


def _regions(body: str) -> Iterator[_Region]:
    """Every region of an answer. Words, and what is inside and outside of code fences, do not run into each other."""
    for part in _FENCE.split(body):
        position = 0
        while start := _JSON_START.search(part, position):
            region, position = _region(part, start.start())
            yield region


def _region(text: str, start: int) -> tuple[_Region, int]:
    """The region that begins at `start`, and where it ends in the text. O(length)."""
    out: list[str] = []
    open_brackets: list[str] = []
    opened_by = last = ""
    i, whole = start, 0
    while i < len(text):
        c = text[i]
        i += 1
        if opened_by:
            if c == "\\":
                out.append(text[i - 1 : i + 1])
                i += 1
                continue
            if c in _CLOSES[opened_by] and (opened_by == '"' or _AFTER_STRING.match(text, i)):
                c = c if opened_by == "'" else '"'
                opened_by, last = "", '"'
                if open_brackets[-1] == "[" and _is_shallow(open_brackets):
                    whole = len(out) + 1
            elif c == '"' and opened_by in "“”":
                c = '\\"'
            out.append(c)
            continue
        c = c.translate(_ASCII)
        if c == '"' or (c in _CLOSES and last in ("", "{", "[", ",", ":")):
            opened_by = c
            c = c if c == "'" else '"'
        elif c in "{[":
            open_brackets.append(c)
        elif c in "}]":
            open_brackets.pop()
        out.append(c)
        if not open_brackets:
            return _Region("".join(out), closed=True, whole="".join(out)), i
        if not (c.isspace() or opened_by):
            last = c
            if c == "," and _is_shallow(open_brackets):
                whole = len(out) - 1
            elif c in "}]" and _is_shallow(open_brackets):
                whole = len(out)
    return _Region("".join(out).rstrip(), closed=False, whole="".join(out[:whole]).rstrip()), len(text)


def _value(region: _Region, truncated: bool) -> _Value:
    """The value of a region. One that ends with a bracket, but not its own, is slightly wrong and not cut off."""
    if region.closed or (not truncated and region.text.endswith(("}", "]"))):
        return _Value(_loaded(region.text))
    dropped = int(region.text.rstrip(" \t\r\n,") != region.whole)
    return _Value(_loaded(region.whole or region.text), True, True, dropped, bool(region.whole))


def _is_shallow(open_brackets: list[str]) -> bool:
    """Whether what ends between these brackets is a field of the answer or an item of one of its lists."""
    return open_brackets in (["{"], ["["], ["{", "["])


def _loaded(text: str) -> Any:
    try:
        return _within_depth(json.loads(text))
    except (ValueError, RecursionError):
        pass
    try:
        return _within_depth(json_repair.loads(text, skip_json_loads=True))
    except (ValueError, RecursionError, IndexError, TypeError, AttributeError, KeyError) as error:
        raise _Unreadable("the answer is not JSON and cannot be repaired") from error


def _fits(data: Any, schema: type[BaseModel]) -> bool:
    return isinstance(data, dict) and any(name in data for name in schema.model_fields)


def _is_empty(data: dict[str, Any], schema: type[BaseModel]) -> bool:
    """Whether all that an object gives is lists without items."""
    return all(data[name] == [] for name in schema.model_fields if name in data)


def _is_item(data: Any, schema: type[BaseModel]) -> bool:
    """Whether a value is one item of a schema that is a single list of objects."""
    (item_type, *more) = _list_fields(schema).values() or (None,)
    if more or len(schema.model_fields) != 1 or not (isinstance(item_type, type) and issubclass(item_type, BaseModel)):
        return False
    return isinstance(data, dict) and not _fits(data, schema) and any(name in data for name in item_type.model_fields)


def _within_depth(value: Any) -> Any:
    level = [value]
    for _ in range(MAX_DEPTH):
        level = [
            child
            for parent in level
            for child in (parent.values() if isinstance(parent, dict) else parent if isinstance(parent, list) else ())
        ]
        if not level:
            return value
    raise _Unreadable(f"the answer is nested more than {MAX_DEPTH} levels deep")


def _as_object(data: Any, schema: type[BaseModel]) -> Any:
    """The object that was meant, where a list, a single item or an object inside a list came instead."""
    lists = _list_fields(schema)
    required = [name for name, info in schema.model_fields.items() if info.is_required()]
    if isinstance(data, list):
        if len(data) == 1 and isinstance(data[0], dict) and any(name in data[0] for name in schema.model_fields):
            return data[0]
        if len(lists) == 1 and set(required) <= set(lists):
            return {next(iter(lists)): data}
    if isinstance(data, dict) and len(schema.model_fields) == 1 and len(lists) == 1:
        name, item_type = next(iter(lists.items()))
        if name not in data and isinstance(item_type, type) and issubclass(item_type, BaseModel):
            if any(field in data for field in item_type.model_fields):
                return {name: [data]}
            nested = [value for value in data.values() if isinstance(value, list)]
            if len(nested) == 1:
                return {name: nested[0]}
    return data


@cache
def _list_fields(schema: type[BaseModel]) -> dict[str, Any]:
    """Fields that hold a list or tuple of any length, with the type of their items."""
    found = {}
    for name, info in schema.model_fields.items():
        if get_origin(info.annotation) in (list, tuple):
            found[name] = get_args(info.annotation)[0]
    return found


def _valid_items(items: list[Any], item_type: Any, prefix: str) -> tuple[list[Any], list[str]]:
    adapter = _adapter(item_type)
    wants_object = isinstance(item_type, type) and issubclass(item_type, BaseModel)
    kept, bad = [], []
    for i, item in enumerate(items):
        try:
            kept.append(adapter.validate_python(_unquoted(item) if wants_object else item))
        except ValidationError as error:
            bad.append(describe(error, f"{prefix}{i}."))
    return kept, bad


@cache
def _adapter(item_type: Any) -> TypeAdapter[Any]:
    return TypeAdapter(item_type)


def _items(value: Any) -> list[Any]:
    """The items of a list field; a list may have come as a string, or a single item without a list."""
    value = _unquoted(value)
    if isinstance(value, list) and len(value) == 1 and isinstance(inner := _unquoted(value[0]), list):
        value = inner
    return value if isinstance(value, list) else [] if value is None else [value]


def _unquoted(value: Any) -> Any:
    """An object or a list that came as a string."""
    if isinstance(value, str) and _JSON_START.match(value.strip()):
        region, end = _region(value.strip(), 0)
        try:
            return json.loads(region.text) if end == len(value.strip()) else value
        except (ValueError, RecursionError):
            return value
    return value


def _kind(data: Any) -> str:
    names = {dict: "an object", list: "a list", str: "a string", bool: "a truth value", type(None): "null"}
    return names.get(type(data), "a number")


def _strict(node: Any) -> Any:
    if isinstance(node, list):
        return [_strict(item) for item in node]
    if not isinstance(node, dict):
        return node
    strict = {key: _strict(value) for key, value in node.items() if key not in ("default", "title") or _is_field(value)}
    if strict.get("type") == "object" and "properties" in strict:
        strict["additionalProperties"] = False
        strict["required"] = list(strict["properties"])
    return strict


def _is_field(value: Any) -> bool:
    """Whether a 'title' or 'default' key is a property of that name and not an annotation."""
    return isinstance(value, dict)
