import ast
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import qgrag

ROOMS = ["qgrag"] + [f"qgrag.{room}" for room in ("corpus", "graph", "index", "retrieval", "training", "evaluation")]
FOLDER = Path(qgrag.__file__).parent


def names_for_type_checkers(room):
    path = FOLDER.joinpath(*room.split(".")[1:], "__init__.py")
    guards = [node for node in ast.parse(path.read_text(encoding="utf-8")).body if isinstance(node, ast.If)]
    return {alias.name for guard in guards for node in guard.body for alias in node.names}


@pytest.mark.parametrize("room", ROOMS)
def test_every_public_name_imports_and_type_checkers_see_the_same_ones(room):
    module = import_module(room)
    assert set(module.__all__) == names_for_type_checkers(room)
    for name in module.__all__:
        assert getattr(module, name).__name__ == name


@pytest.mark.parametrize("room", ROOMS)
def test_an_unknown_name_is_refused_with_the_rooms_name(room):
    with pytest.raises(AttributeError, match=f"module '{room}' has no attribute 'nothing'"):
        import_module(room).nothing  # noqa: B018


def test_importing_the_rooms_loads_no_torch():
    code = f"import sys, {', '.join(ROOMS)}; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
