"""The examples in the kernels' docstrings."""

import doctest
from importlib import import_module
from pkgutil import iter_modules

import pytest

import qgrag.graph


@pytest.mark.parametrize("name", [module.name for module in iter_modules(qgrag.graph.__path__)])
def test_docstring_examples(name: str) -> None:
    assert doctest.testmod(import_module(f"qgrag.graph.{name}")).failed == 0
