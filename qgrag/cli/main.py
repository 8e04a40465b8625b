"""The command `qgrag`: picks a subcommand and shows errors that a user can act on without a traceback."""

import logging
import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.metadata import version

from qgrag.config import unknown_name
from qgrag.errors import QgragError

COMMANDS = {
    "index": "build an index from documents, or bring one up to date",
    "retrieve": "ask an index questions and get ranked, traceable chunks",
    "ask": "ask an index questions and get answers with the chunks that they cite",
    "eval": "measure retrievers on a data set",
    "reproduce": "make a results table of a paper again, beside the paper's numbers",
    "sweep": "measure a retriever over ranges of its parameters, and plot them",
    "questions": "make broad questions about a corpus, for query-focused summaries",
    "train": "train an embedding model, or the reward model that chooses subgraphs",
    "data": "make training data from gold questions or from an index",
    "info": "show what an index holds",
    "merges": "show which names are one entity, and which would be",
    "check": "look for damage and orphans in an index",
}

USAGE = """usage: qgrag COMMAND [options]

Train, build and run query-centric graph retrieval.

{commands}

  qgrag COMMAND --help    every option of a command
  qgrag --version

A first run:
  qgrag index DOCS --out my-index
  qgrag retrieve my-index --retriever qcg "a question"
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code: 0 done, 1 found problems, 2 bad input, 130 interrupted."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    try:
        return _run(arguments)
    except QgragError as error:
        print(f"qgrag {arguments[0]}: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print(
            f"\nqgrag {arguments[0]}: interrupted; finished work is kept, and the same command continues it",
            file=sys.stderr,
        )
        return 130
    except BrokenPipeError:
        sys.stderr.close()
        return 0


def _run(arguments: list[str]) -> int:
    if not arguments or arguments[0] in {"-h", "--help", "help"}:
        commands = "\n".join(f"  {name:<10}{text}" for name, text in COMMANDS.items())
        print(USAGE.format(commands=commands), flush=True)
        return 0
    if arguments[0] == "--version":
        print(f"qgrag {version('qgrag')}")
        return 0
    name = arguments[0]
    if name not in COMMANDS:
        print(f"qgrag: {unknown_name('command', name, COMMANDS)}; see qgrag --help", file=sys.stderr)
        return 2
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s %(name)s: %(message)s")
    return int(import_module(f"qgrag.cli.{name}").run(arguments[1:]))


if __name__ == "__main__":
    sys.exit(main())
