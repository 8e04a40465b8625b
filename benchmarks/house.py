"""How the package is cut into rooms: files, code, docstrings, file lengths, upward imports and circles.

    python benchmarks/house.py                    # this checkout
    python benchmarks/house.py ../before .        # two checkouts, each cell 'before → after'

The sources are parsed, not imported. Every import counts, also within functions and for type checkers alone.
"""

import argparse
import ast
import tokenize
from dataclasses import dataclass
from pathlib import Path
from statistics import median

ROOMS = [
    "shared",
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
    "distributed",
    "serving",
    "integrations",
    "front",
    "cli",
]
"""The rooms in order. `shared`: the package's top modules and the demo corpus. `front`: `qgrag/__init__.py`."""
NOT_CODE = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENCODING,
    tokenize.ENDMARKER,
}


@dataclass(frozen=True)
class Module:
    """One source file.

    Attributes:
        name: dotted, `qgrag.graph.csr`; a package's is that of its folder.
        path: relative to the root.
        lines: all lines.
        code: lines that hold more than comments and docstrings.
        docstrings: docstrings of the module, its classes, functions and constants.
        imports: modules of the package that it imports.
    """

    name: str
    path: Path
    lines: int
    code: int
    docstrings: int
    imports: frozenset[str]

    @property
    def room(self) -> str:
        parts = self.path.parts
        if len(parts) > 2:
            return "shared" if parts[1] == "demo" else parts[1]
        return "front" if parts[-1] == "__init__.py" else "shared"


def read_package(root: Path) -> dict[str, Module]:
    """The modules of `root/qgrag` by name."""
    paths = {module_name(path.relative_to(root)): path for path in sorted((root / "qgrag").rglob("*.py"))}
    return {name: read_module(name, path, root, set(paths)) for name, path in paths.items()}


def module_name(path: Path) -> str:
    parts = path.with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def read_module(name: str, path: Path, root: Path, known: set[str]) -> Module:
    source = path.read_text(encoding="utf-8")
    tree = ast.parse(source)
    docs = docstring_nodes(tree)
    in_docs = {line for node in docs for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)}
    with path.open("rb") as file:
        code = {
            line
            for token in tokenize.tokenize(file.readline)
            if token.type not in NOT_CODE
            for line in range(token.start[0], token.end[0] + 1)
        }
    return Module(
        name,
        path.relative_to(root),
        len(source.splitlines()),
        len(code - in_docs),
        len(docs),
        frozenset(imported_modules(tree, known) - {name}),
    )


def docstring_nodes(tree: ast.Module) -> list[ast.Expr]:
    """Strings that stand alone as statements: docstrings, and those under an attribute or a constant."""
    return [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
    ]


def imported_modules(tree: ast.Module, known: set[str]) -> set[str]:
    """Modules among `known` that the source imports, at any depth."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            whole = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= {full if full in known else node.module for full in whole}
    return found & known


def upward_imports(modules: dict[str, Module]) -> list[str]:
    """Imports of a room that comes later than the importing one, as `FILE uses MODULE`."""
    return [
        f"{module.path} uses {other}"
        for module in modules.values()
        for other in sorted(module.imports)
        if ROOMS.index(modules[other].room) > ROOMS.index(module.room)
    ]


def circles(modules: dict[str, Module]) -> list[list[str]]:
    """Groups of two or more modules that reach each other through imports."""
    reached = {name: reachable(name, modules) for name in modules}
    groups: dict[frozenset[str], list[str]] = {}
    for name in modules:
        group = frozenset(other for other in reached[name] if name in reached[other])
        if len(group | {name}) > 1:
            groups.setdefault(group | {name}, []).append(name)
    return [sorted(group) for group in groups]


def reachable(start: str, modules: dict[str, Module]) -> set[str]:
    seen: set[str] = set()
    left = list(modules[start].imports)
    while left:
        name = left.pop()
        if name not in seen:
            seen.add(name)
            left.extend(modules[name].imports)
    return seen


def figures(modules: list[Module]) -> list[str]:
    """Files, lines of code, docstrings, median and longest file, as they are printed."""
    if not modules:
        return ["–"] * 5
    lines = [module.lines for module in modules]
    return [
        f"{len(modules):,}",
        f"{sum(module.code for module in modules):,}",
        f"{sum(module.docstrings for module in modules):,}",
        f"{median(lines):.0f}",
        f"{max(lines):,}",
    ]


def table(checkouts: list[dict[str, Module]]) -> str:
    """A Markdown table with one row per room and one for the package."""
    rooms = [room for room in ROOMS if any(module.room == room for c in checkouts for module in c.values())]
    rows = [
        "| room | files | lines of code | docstrings | median file | longest file |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for room in [*rooms, ""]:
        columns = zip(*(figures([m for m in c.values() if room in ("", m.room)]) for c in checkouts))
        cells = [" → ".join(column) for column in columns]
        rows.append(f"| {f'`{room}`' if room else '**all**'} | {' | '.join(cells)} |")
    return "\n".join(rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("roots", type=Path, nargs="*", default=[Path(__file__).resolve().parent.parent])
    checkouts = [read_package(root.resolve()) for root in parser.parse_args().roots]
    print(table(checkouts))
    upward = [upward_imports(modules) for modules in checkouts]
    rings = [circles(modules) for modules in checkouts]
    print(f"\nUpward imports: {' → '.join(str(len(found)) for found in upward)}.")
    print(f"Circles of imports: {' → '.join(str(len(found)) for found in rings)}.")
    for line in [*upward[-1], *(" <-> ".join(ring) for ring in rings[-1])]:
        print(f"- {line}")


if __name__ == "__main__":
    main()
