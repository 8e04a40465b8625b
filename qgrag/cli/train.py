"""`qgrag train`: the same as `python train/embedding.py` and its neighbours."""

from collections.abc import Sequence
from importlib import import_module

from qgrag.config import unknown_name
from qgrag.errors import InputError

MODULES = {
    "embedding": "fine-tune an embedding model on pairs (see qgrag data pairs)",
    "evidence": "train the model by which auto chooses from all retrievers' candidates (see qgrag data evidence)",
    "reward": "train the reward model that chooses among subgraphs (see qgrag data rewards)",
}

USAGE = """usage: qgrag train {{embedding,evidence,reward}} {{fit,validate,test}} [options]

{modules}

Every option of Lightning's trainer, of the model and of the data is an argument and a key in YAML:
  qgrag train embedding fit --config configs/train/embedding-full.yaml --data.train train.jsonl --out runs/mine
  qgrag train embedding fit --config configs/train/embedding-full.yaml --trainer.strategy ddp --trainer.devices 2
  qgrag train reward fit --help
"""


def run(arguments: Sequence[str]) -> int:
    if not arguments or arguments[0] in {"-h", "--help"}:
        print(USAGE.format(modules="\n".join(f"  {name:<11}{text}" for name, text in MODULES.items())))
        return 0
    name, rest = arguments[0], list(arguments[1:])
    if name not in MODULES:
        raise InputError(f"{unknown_name('model to train', name, MODULES)}; see qgrag train --help")
    import_module(f"qgrag.training.{name}").main(rest, program=f"qgrag train {name}")
    return 0
