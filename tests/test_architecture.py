import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parent.parent / "qgrag"
ROOMS = [
    "corpus",
    "names",
    "graph",
    "llm",
    "models",
    "extraction",
    "index",
    "retrieval",
    "generation",
    "training",
    "evaluation",
    "reproduce",
    "cli",
]
SHARED = {"errors", "config", "progress", "demo"}


def imported_rooms(path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = [node.module]
        for name in names:
            parts = name.split(".")
            if parts[0] == "qgrag" and len(parts) > 1:
                yield parts[1]


@pytest.mark.parametrize("room", ROOMS)
def test_rooms_use_only_rooms_above_them(room):
    allowed = set(ROOMS[: ROOMS.index(room) + 1]) | SHARED
    wrong = {
        f"{path.relative_to(PACKAGE)} uses qgrag.{other}"
        for path in (PACKAGE / room).rglob("*.py")
        for other in imported_rooms(path)
        if other not in allowed
    }
    assert not wrong


@pytest.mark.parametrize("name", sorted(SHARED - {"demo"}))
def test_shared_modules_use_no_room(name):
    assert set(imported_rooms(PACKAGE / f"{name}.py")) <= SHARED


def test_every_folder_is_a_known_room():
    folders = {path.name for path in PACKAGE.iterdir() if path.is_dir() and not path.name.startswith("_")}
    assert folders <= {*ROOMS, "demo", "checkpoints"}


def test_importing_the_package_is_light():
    import subprocess
    import sys

    heavy = ("torch", "spacy", "faiss", "pyarrow")
    code = f"import qgrag, qgrag.cli.main, sys; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
