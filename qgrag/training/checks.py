"""Errors of a training run that say what happened and what to do."""

from collections.abc import Mapping
from pathlib import Path
from pickle import UnpicklingError
from typing import Any

import torch
from torch import Tensor, nn

from qgrag.errors import ConfigError, InputError, QgragError
from qgrag.models.reward import load_weights


class NonFiniteLossError(QgragError, ArithmeticError):
    """The loss became infinite or not a number; the weights can no longer be trusted."""


def check_finite(loss: Tensor, step: int) -> None:
    """Raise NonFiniteLossError unless the loss is finite."""
    if not bool(loss.isfinite()):
        raise NonFiniteLossError(
            f"the loss is {loss.item()} at step {step}; lower optimizer.learning_rate, clip gradients "
            "(trainer.gradient_clip_val: 1), or use trainer.precision bf16-mixed or 32; the last checkpoint is sound"
        )


def read_training_checkpoint(path: Path) -> dict[str, Any]:
    """What a run wrote to a `.ckpt` file, its tensors backed by the file, on the CPU; plain values only.

    Raises:
        InputError: no such file, or one that holds something else.
    """
    if not path.is_file():
        raise InputError(f"{path}: no such checkpoint; a run writes OUT/checkpoints/latest.ckpt and best-*.ckpt")
    try:
        return dict(torch.load(path, map_location="cpu", weights_only=True, mmap=True))
    except (RuntimeError, UnpicklingError, EOFError, OSError, TypeError, ValueError) as error:
        raise InputError(f"{path}: not a training checkpoint, or a damaged one: only plain tensors are read") from error


def mark_checkpoint(checkpoint: dict[str, Any], kind: str, architecture: str) -> None:
    """Write into a training checkpoint what it is of, for `check_checkpoint`."""
    checkpoint["qgrag"] = {"kind": kind, "architecture": architecture}


def check_checkpoint(checkpoint: Mapping[str, Any], kind: str, architecture: str, module: nn.Module) -> None:
    """Compare a training checkpoint with the module that is to go on from it.

    Raises:
        ConfigError: it is another program's, another kind of module's, or of another architecture.
    """
    mark = checkpoint.get("qgrag")
    if not isinstance(mark, Mapping) or mark.get("kind") != kind:
        found = mark.get("kind") if isinstance(mark, Mapping) else "unknown"
        raise ConfigError(f"--ckpt_path: a checkpoint of kind {found!r} where this command trains {kind!r}")
    if mark["architecture"] != architecture:
        raise ConfigError(
            f"--ckpt_path: a checkpoint of another architecture: {mark['architecture']}, "
            f"where the configuration describes {architecture}"
        )
    load_weights(module, checkpoint["state_dict"], "--ckpt_path")
