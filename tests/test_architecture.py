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
SHARED = {"errors", "config", "progress", "files", "lazy", "demo"}


def module_name(path):
    return ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts).removesuffix(".__init__")


MODULES = {module_name(path): path for path in PACKAGE.rglob("*.py")}


def imports(tree):
    """Modules of the package that a file imports anywhere in it, also for type checkers alone."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.split(".")[0] == "qgrag")
        elif isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "qgrag":
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                yield inner if inner in MODULES else node.module


def imports_of(path):
    return set(imports(ast.parse(path.read_text(encoding="utf-8"))))


def imported_rooms(path):
    """Second part of each name imported; `qgrag` itself where the whole package is."""
    return {(*module.split("."), "qgrag")[1] for module in imports_of(path)}


def circle_in(uses):
    """Modules that use each other in a ring, or None. `uses` maps each module to those that it imports."""
    done = set()

    def walk(module, way):
        if module in way:
            return [*way[way.index(module) :], module]
        if module in done:
            return None
        for other in sorted(uses.get(module, ())):
            if ring := walk(other, [*way, module]):
                return ring
        done.add(module)
        return None

    return next((ring for module in sorted(uses) if (ring := walk(module, []))), None)


def test_no_two_modules_import_each_other_even_for_type_checkers():
    ring = circle_in({name: imports_of(path) - {name} for name, path in MODULES.items()})
    assert ring is None, " -> ".join(ring)


def test_a_circle_under_type_checking_and_the_whole_package_are_seen():
    tree = ast.parse(
        "import qgrag\nif TYPE_CHECKING:\n    from qgrag.index.reader import Index\n"
        "def f():\n    from qgrag.graph import csr"
    )
    assert set(imports(tree)) == {"qgrag", "qgrag.index.reader", "qgrag.graph.csr"}
    assert circle_in({"a": {"b"}, "b": {"c"}, "c": {"b"}}) == ["b", "c", "b"]
    assert circle_in({"a": {"b", "c"}, "b": {"c"}}) is None


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
