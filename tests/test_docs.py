"""What README and docs name exists: modules, names in them, paths of the repository, commands and their options."""

import ast
import re
import shlex
from importlib import import_module
from pathlib import Path

import jsonargparse
import pytest

from qgrag.cli.main import COMMANDS, main

ROOT = Path(__file__).resolve().parent.parent
PAGES = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")])
FENCE = re.compile(r"^```(?P<language>\w*|\{\w+\})\n(?P<code>.*?)^```$", re.M | re.S)
INLINE = re.compile(r"`([^`]+)`")
DOTTED = re.compile(r"^qgrag(\.\w+)+(\(.*\))?$")
REPOSITORY_PATH = re.compile(
    r"(?<![\w./-])(?:(?:qgrag|docs|configs|benchmarks|tests|\.ci|\.github)/[\w./*-]*[\w*/]|train/\w+\.py)"
)
PLACEHOLDER = re.compile(r"[A-Z]{2,}")


def blocks(page, *languages):
    return [
        match["code"] for match in FENCE.finditer(page.read_text(encoding="utf-8")) if match["language"] in languages
    ]


def prose(page):
    return FENCE.sub("", page.read_text(encoding="utf-8"))


def name_of(page):
    return str(page.relative_to(ROOT))


def resolve(dotted):
    """The module, class or function that a dotted path names; raises ImportError or AttributeError."""
    parts = dotted.split(".")
    for length in range(len(parts), 0, -1):
        module = ".".join(parts[:length])
        try:
            found = import_module(module)
        except ModuleNotFoundError as error:
            if error.name is None or not module.startswith(error.name):
                raise
            continue
        for part in parts[length:]:
            found = getattr(found, part)
        return found
    raise ImportError(dotted)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_modules_and_names_in_backticks_exist(page):
    for text in INLINE.findall(prose(page)):
        if DOTTED.match(text):
            resolve(text.split("(")[0])


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_imports_in_python_blocks_exist(page):
    for code in blocks(page, "python"):
        for node in ast.walk(ast.parse(code)):
            if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] in {"qgrag", "tests"}:
                for alias in node.names:
                    resolve(f"{node.module}.{alias.name}")


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_paths_of_the_repository_exist(page):
    missing = []
    for path in REPOSITORY_PATH.findall(page.read_text(encoding="utf-8")):
        kept = [part for part in Path(path).parts if not PLACEHOLDER.search(part) or part == "README.md"]
        if not any(ROOT.glob(str(Path(*kept)))):
            missing.append(path)
    assert not missing


def commands_of(page):
    """Every `qgrag ...` command line as (words, whole): `whole` is false for one within a sentence, which may leave
    required arguments out.
    """
    found = []
    for code in blocks(page, "", "sh", "console"):
        for line in re.sub(r"\s*\\\n\s*", " ", code).splitlines():
            start = re.search(r"(?:^|\s)(qgrag [a-z-].*)$", line)
            if start and not line.startswith(("  ", "#")):
                found.append((shlex.split(re.split(r"\s{4,}|\s>\s", start[1])[0], comments=True), True))
    for text in INLINE.findall(prose(page)):
        if re.match(r"qgrag [a-z]", text):
            found.append((shlex.split(text), False))
    return found


class Parsed(Exception):
    """Raised in place of running a command whose arguments were read."""


def without_files_of_the_reader(words):
    """The words without `--config FILE` where the page has the reader write that file."""
    places = [i for i, word in enumerate(words) if word == "--config" and not Path(words[i + 1]).is_file()]
    return [word for i, word in enumerate(words) if i not in places and i - 1 not in places]


@pytest.fixture
def stop_after_parsing(monkeypatch):
    """Every command ends with `Parsed` once its arguments are read. The fixture's value is called with whether the
    next command is whole.
    """
    monkeypatch.chdir(ROOT)
    parse = jsonargparse.ArgumentParser.parse_args
    whole = [True]

    def parse_only(parser, *arguments, **options):
        if not whole[0]:
            parser.required_args = set()
            for action in parser._actions:
                action.required = False
        parse(parser, *arguments, **options)
        raise Parsed

    monkeypatch.setattr(jsonargparse.ArgumentParser, "parse_args", parse_only)
    return lambda value: whole.__setitem__(0, value)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_commands_are_understood(page, stop_after_parsing, capsys):
    for words, whole in commands_of(page):
        if words[1] == "--version" or "--help" in words:
            continue
        assert words[1] in COMMANDS, shlex.join(words)
        if not whole and not any(word.startswith("-") for word in words):
            continue
        stop_after_parsing(whole)
        try:
            main(without_files_of_the_reader(words[1:]))
        except Parsed:
            continue
        except SystemExit:
            pass
        pytest.fail(f"{shlex.join(words)}\n{capsys.readouterr().err[-800:]}")


def test_every_new_import_path_of_the_changelog_exists():
    rows = re.findall(
        r"^\| (`qgrag\.[^|]*) \| `(qgrag[\w.]*)` \| ([^|]*)", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.M
    )
    assert rows
    for old, new, note in rows:
        import_module(new)
        if note.startswith("one module each"):
            for name in INLINE.findall(old):
                import_module(f"{new}.{name.split('.')[-1]}")
