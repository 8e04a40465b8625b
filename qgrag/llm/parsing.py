"""From an answer's text to a valid value of a pydantic schema, or an error to show to the model."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, get_args, get_origin

import json_repair
from pydantic import BaseModel, TypeAdapter, ValidationError

from qgrag.llm.records import SchemaT

MAX_DEPTH = 64
MAX_ERRORS_SHOWN = 3
_FENCE = re.compile(r"```(?:json\w*)?[ \t]*\n?(.*?)(?:```|\Z)", re.S | re.I)
_JSON_START = re.compile(r"[{\[]")


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

    Takes JSON bare, in a code fence or after some words; repairs it where it is cut off or slightly wrong;
    takes a bare list (or a single item) for a schema whose only required field is a list; and validates
    list items one by one, so that a bad one costs only itself. What was being written when the text broke
    off is left out. Where items came and none is valid, that is an error.

    Args:
        text: the answer, without reasoning.
        schema: what it has to be.
        truncated: the backend says that the answer ended at the token limit.
    """
    try:
        data, repaired, torn = _load(text, truncated)
    except _Unreadable as problem:
        return Parsed(error=str(problem))
    data = _as_object(data, schema)
    if not isinstance(data, dict):
        return Parsed(error=f"expected a JSON object, got {_kind(data)}", repaired=repaired)
    dropped = 0
    if torn:
        data, dropped = _without_torn_end(data), 1
        if any(data.get(name) == [] for name in _list_fields(schema)):
            return Parsed(error="the answer breaks off in its first item", dropped=1, repaired=True)
    cleaned = dict(data)
    for name, item_type in _list_fields(schema).items():
        if name not in data:
            continue
        items = data[name]
        if not isinstance(items, list):
            items = [] if items is None else [items]
        kept, bad = _valid_items(items, item_type, f"{name}.")
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


def _load(text: str, truncated: bool) -> tuple[Any, bool, bool]:
    """The JSON value in a text; whether it had to be repaired or cut out of other text; whether its end is
    torn."""
    body = text.strip()
    if not body:
        raise _Unreadable("the answer is empty")
    try:
        return _within_depth(json.loads(body)), False, False
    except (ValueError, RecursionError):
        pass
    fence = _FENCE.search(body)
    if fence and _JSON_START.search(fence.group(1)):
        body = fence.group(1)
    start = _JSON_START.search(body)
    if start is None:
        raise _Unreadable("the answer holds no JSON")
    body = body[start.start() :].rstrip()
    try:
        value, _ = json.JSONDecoder().raw_decode(body)
        return _within_depth(value), True, False
    except (ValueError, RecursionError):
        pass
    try:
        value = json_repair.loads(body, skip_json_loads=True)
    except (ValueError, RecursionError, IndexError, TypeError, AttributeError, KeyError) as error:
        raise _Unreadable("the answer is not JSON and cannot be repaired") from error
    return _within_depth(value), True, truncated or not body.endswith(("}", "]"))


def _without_torn_end(data: dict[str, Any]) -> dict[str, Any]:
    """The object without what was being written when its text broke off: the last item of a list, or a
    field."""
    if not data:
        return data
    *kept, last = data
    whole = {name: data[name] for name in kept}
    if isinstance(data[last], list):
        whole[last] = data[last][:-1]
    return whole


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


def _unquoted(item: Any) -> Any:
    """An object that came as a JSON string."""
    if isinstance(item, str) and item.lstrip().startswith("{"):
        try:
            return json.loads(item)
        except (ValueError, RecursionError):
            return item
    return item


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
