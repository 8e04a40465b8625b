"""Parsers whose help keeps its examples on lines of their own."""

from collections.abc import Sequence
from pathlib import Path

from jsonargparse import ArgumentParser, DefaultHelpFormatter

from qgrag.config import from_plain, load_yaml


class ExampleFormatter(DefaultHelpFormatter):
    """Shows a description as it is written."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return "".join(indent + line for line in text.splitlines(keepends=True))


def command_parser(command: str, description: str) -> ArgumentParser:
    """Parser of `qgrag COMMAND`."""
    return ArgumentParser(prog=f"qgrag {command}", description=description, formatter_class=ExampleFormatter)


def options_first(parser: ArgumentParser, arguments: Sequence[str]) -> list[str]:
    """The arguments with positional ones at the end.

    Until Python 3.13 argparse takes `*` positionals for absent where an option stands between them and the
    positional before, as in `INDEX --top-k 3 QUESTION`. Options must take one value or be flags.
    """
    flags = {name for action in parser._actions if action.nargs == 0 for name in action.option_strings}
    options: list[str] = []
    positional: list[str] = []
    left = iter(arguments)
    for argument in left:
        if not argument.startswith("-"):
            positional.append(argument)
            continue
        options.append(argument)
        if argument not in flags and "=" not in argument:
            options.extend([value] if (value := next(left, None)) is not None else [])
    return options + positional


def validate_config_files(arguments: Sequence[str], cls: type) -> None:
    """Check each `--config FILE` with errors that name the file and the nearest key."""
    given = list(arguments)
    for i, argument in enumerate(given):
        if argument == "--config" and i + 1 < len(given):
            from_plain(cls, load_yaml(Path(given[i + 1])), where=given[i + 1])
        elif argument.startswith("--config="):
            path = argument.removeprefix("--config=")
            from_plain(cls, load_yaml(Path(path)), where=path)
