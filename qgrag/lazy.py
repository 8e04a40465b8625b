"""Public names of a room that are imported when they are first used."""

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any


def lazy_names(room: str, modules: Mapping[str, Sequence[str]]) -> Callable[[str], Any]:
    """The `__getattr__` of a package whose public names are imported on first use.

    Args:
        room: the package's `__name__`.
        modules: names by the module that defines them, its path relative to the package, such as `methods.qcg`.
    """
    home = {name: f"{room}.{module}" for module, names in modules.items() for name in names}

    def get(name: str) -> Any:
        if name in home:
            return getattr(import_module(home[name]), name)
        raise AttributeError(f"module {room!r} has no attribute {name!r}")

    return get
