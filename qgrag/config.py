"""Plain values (from YAML, JSON or the command line) to configuration dataclasses."""

import difflib
from collections.abc import Iterable
from dataclasses import fields, is_dataclass
from pathlib import Path
from types import UnionType
from typing import Any, TypeVar, Union, get_args, get_origin

from qgrag.errors import ConfigError

T = TypeVar("T")


def from_plain(cls: type[T], values: dict[str, Any], *, where: str) -> T:
    """Make the dataclass `cls` from nested plain values, checking types.

    Args:
        cls: a configuration dataclass.
        values: its fields by name; missing ones keep their defaults.
        where: file or argument named in errors.

    Raises:
        ConfigError: unknown key (with the nearest known one), wrong type, or a value that `cls` refuses.
    """
    from jsonargparse import ArgumentError, ArgumentParser

    _check_keys(cls, values, where, "")
    parser = ArgumentParser(exit_on_error=False)
    parser.add_argument("--value", type=cls, default=cls())
    try:
        return parser.instantiate_classes(parser.parse_object({"value": values})).value
    except ConfigError as error:
        raise ConfigError(f"{where}: {error}") from error
    except (ArgumentError, TypeError, ValueError) as error:
        raise ConfigError(f"{where}: {error}") from error


def load_yaml(path: Path) -> dict[str, Any]:
    """Read a YAML mapping; an empty file is an empty one.

    Raises:
        ConfigError: missing, unreadable or not a mapping; names the file and, where known, the line.
    """
    import yaml

    try:
        values = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from error
    except (UnicodeDecodeError, yaml.YAMLError) as error:
        raise ConfigError(f"{path}: not valid YAML: {error}") from error
    if values is None:
        return {}
    if not isinstance(values, dict):
        raise ConfigError(f"{path}: must hold keys and values, not a {type(values).__name__}")
    return values


def unknown_name(what: str, name: str, known: Iterable[str]) -> str:
    """Error text for a name that is not among the known ones, with the nearest of them."""
    names = list(known)
    nearest = difflib.get_close_matches(name, names, n=1)
    hint = f"did you mean {nearest[0]!r}?" if nearest else f"known are {', '.join(names)}"
    return f"{what} {name!r} is unknown; {hint}"


def _check_keys(cls: type, values: Any, where: str, prefix: str) -> None:
    if not isinstance(values, dict):
        raise ConfigError(f"{where}: {prefix or 'the configuration'} must hold keys and values, not {values!r}")
    known = {field.name: field for field in fields(cls)}
    for key, value in values.items():
        if key not in known:
            raise ConfigError(unknown_name(f"{where}: key", prefix + str(key), [prefix + k for k in known]))
        nested = _dataclass_in(known[key].type)
        if nested is not None and isinstance(value, dict):
            _check_keys(nested, value, where, f"{prefix}{key}.")


def _dataclass_in(annotation: Any) -> type | None:
    """The dataclass in an annotation such as `C` or `C | None`."""
    union = get_origin(annotation) in (Union, UnionType)
    for candidate in get_args(annotation) if union else (annotation,):
        if isinstance(candidate, type) and is_dataclass(candidate):
            return candidate
    return None
