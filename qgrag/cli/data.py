"""`qgrag data`: training data from gold questions or from an index itself."""

from collections.abc import Sequence
from importlib import import_module

from qgrag.config import unknown_name
from qgrag.errors import InputError

KINDS = {
    "pairs": "queries with texts that answer them and texts that do not, to fine-tune an embedding model",
    "evidence": "pools of candidates of each question, to train the model by which auto chooses",
    "rewards": "subgraphs of each question with how much each helped, to train the reward model",
}

USAGE = """usage: qgrag data {{{names}}} INDEX --out FOLDER [options]

{kinds}

Each writes a file for training, one for validation and one for tests. See qgrag data KIND --help.
"""


def run(arguments: Sequence[str]) -> int:
    if not arguments or arguments[0] in {"-h", "--help"}:
        kinds = "\n".join(f"  {name:<10}{text}" for name, text in KINDS.items())
        print(USAGE.format(names=",".join(KINDS), kinds=kinds))
        return 0
    if arguments[0] not in KINDS:
        raise InputError(f"{unknown_name('data to make', arguments[0], KINDS)}; see qgrag data --help")
    return int(import_module(f"qgrag.cli.data_{arguments[0]}").run(arguments[1:]))
