"""Parsers whose help keeps its examples on lines of their own."""

from jsonargparse import ArgumentParser, DefaultHelpFormatter


class ExampleFormatter(DefaultHelpFormatter):
    """Shows a description as it is written."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return "".join(indent + line for line in text.splitlines(keepends=True))


def command_parser(command: str, description: str) -> ArgumentParser:
    """Parser of `qgrag COMMAND`."""
    return ArgumentParser(prog=f"qgrag {command}", description=description, formatter_class=ExampleFormatter)
