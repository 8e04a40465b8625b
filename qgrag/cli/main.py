"""The command `qgrag`: picks a subcommand and shows errors that a user can act on without a traceback."""

import logging
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.metadata import version

from qgrag.cli.exit_codes import DONE, INTERRUPTED, MISTAKE, PARTLY
from qgrag.cli.outputs import os_error_message
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

Exit codes: 0 all was done; 1 a check found something; 2 the command has to be changed; 3 done in part, and the same
command tries the rest again; 130 interrupted.
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; returns one of `qgrag.cli.exit_codes`."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    try:
        code = _run(arguments)
        sys.stdout.flush()
        return code
    except QgragError as error:
        message, code = str(error), PARTLY if _budget_is_spent(error) else MISTAKE
    except KeyboardInterrupt:
        message, code = "interrupted; finished work is kept, and the same command continues it", INTERRUPTED
    except (BrokenPipeError, SystemExit) as error:
        if isinstance(error, SystemExit) and not isinstance(error.__context__, BrokenPipeError):
            raise
        _drop_stdout()
        message, code = "whoever read the output stopped reading; write it to a file to keep all of it", MISTAKE
    except OSError as error:
        _drop_stdout()
        message, code = os_error_message(error), MISTAKE
    print(f"qgrag {arguments[0] if arguments else ''}: {message}", file=sys.stderr)
    return code


def _budget_is_spent(error: QgragError) -> bool:
    """Whether a run stopped at the budget that the user set, with finished work kept."""
    from qgrag.llm.errors import BudgetSpentError

    return isinstance(error, BudgetSpentError) or isinstance(error.__cause__, BudgetSpentError)


def _drop_stdout() -> None:
    """Point stdout nowhere if it cannot be written to, so that Python's own flush at the end raises nothing."""
    try:
        sys.stdout.flush()
    except OSError:
        with open(os.devnull, "w") as nowhere:
            os.dup2(nowhere.fileno(), sys.stdout.fileno())


def _run(arguments: list[str]) -> int:
    if not arguments or arguments[0] in {"-h", "--help", "help"}:
        commands = "\n".join(f"  {name:<10}{text}" for name, text in COMMANDS.items())
        print(USAGE.format(commands=commands), flush=True)
        return DONE
    if arguments[0] == "--version":
        print(f"qgrag {version('qgrag')}")
        return DONE
    name = arguments[0]
    if name not in COMMANDS:
        print(f"qgrag: {unknown_name('command', name, COMMANDS)}; see qgrag --help", file=sys.stderr)
        return MISTAKE
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s %(name)s: %(message)s")
    return int(import_module(f"qgrag.cli.{name}").run(arguments[1:]))


if __name__ == "__main__":
    sys.exit(main())
