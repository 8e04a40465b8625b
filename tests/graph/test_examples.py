"""The examples in the kernels' docstrings."""

import doctest
from importlib import import_module

import pytest


@pytest.mark.parametrize("name", ["csr", "expand", "knn", "ppr", "ppr_local", "ragged", "shortest_paths", "subgraph"])
def test_docstring_examples(name: str) -> None:
    assert doctest.testmod(import_module(f"qgrag.graph.{name}")).failed == 0
