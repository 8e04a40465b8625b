"""LightningCLI for both modules: every argument in YAML and on the command line."""

import logging
import shlex
import time
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pytorch_lightning import LightningDataModule, LightningModule, Trainer
from pytorch_lightning.callbacks import EarlyStopping, ModelCheckpoint
from pytorch_lightning.cli import LightningArgumentParser, LightningCLI
from pytorch_lightning.loggers import CSVLogger, TensorBoardLogger
from pytorch_lightning.utilities.exceptions import MisconfigurationException
from pytorch_lightning.utilities.rank_zero import rank_zero_info

from qgrag.errors import ConfigError, InputError
from qgrag.training.checks import read_training_checkpoint
from qgrag.training.curves import plot_curves, read_curves
from qgrag.training.export import TrainingRecord

logger = logging.getLogger(__name__)

CHECKPOINT_KEYWORDS = ("best", "last", "hpc")
"""What Lightning takes for a checkpoint that it finds itself."""


class TrainingCLI(LightningCLI):
    """Adds to Lightning's: one folder for everything that a run writes, best and latest checkpoints, early stopping,
    and the export of the best weights when `fit` is done.

    `OUT/checkpoints/best-*.ckpt` is the best by the monitored metric; `OUT/checkpoints/latest.ckpt` is for
    `--ckpt_path` after a run that was stopped, in mid-epoch too; `OUT/logs` holds metrics as CSV and for TensorBoard;
    `OUT/curves.png` shows them; `OUT/model` is the result.
    """

    about = ""
    kind = ""
    monitor = ""
    shown: Sequence[str] = ()
    command = ""

    @staticmethod
    def subcommands() -> dict[str, set[str]]:
        return {name: skipped for name, skipped in LightningCLI.subcommands().items() if name != "predict"}

    def parse_arguments(self, parser: LightningArgumentParser, args: Any) -> None:
        super().parse_arguments(parser, args)
        path = self.config[self.config.subcommand].get("ckpt_path")
        if path and path not in CHECKPOINT_KEYWORDS:
            read_training_checkpoint(Path(path))

    def add_arguments_to_parser(self, parser: LightningArgumentParser) -> None:
        parser.add_argument("--out", type=str, default=f"runs/{self.kind}", help="folder of the run")
        parser.add_lightning_class_args(ModelCheckpoint, "best")
        parser.add_lightning_class_args(ModelCheckpoint, "latest")
        parser.add_lightning_class_args(EarlyStopping, "early_stopping")
        parser.set_defaults(
            {
                "best.monitor": self.monitor,
                "best.mode": "max",
                "best.filename": "best-{epoch}-{step}",
                "latest.filename": "latest",
                "latest.monitor": None,
                "latest.every_n_train_steps": 100,
                "latest.enable_version_counter": False,
                "early_stopping.monitor": self.monitor,
                "early_stopping.mode": "max",
                "early_stopping.patience": 3,
                "trainer.use_distributed_sampler": False,
                "trainer.log_every_n_steps": 10,
                "trainer.num_sanity_val_steps": 0,
            }
        )
        for name in ("best", "latest"):
            parser.link_arguments("out", f"{name}.dirpath", compute_fn=_checkpoint_folder)
        parser.link_arguments("out", "trainer.default_root_dir")
        for name in ("model", "data"):
            parser.link_arguments("seed_everything", f"{name}.seed", compute_fn=_seed)

    def instantiate_trainer(self, **kwargs: Any) -> Trainer:
        settings = self._get(self.config_init, "trainer", default={})
        if settings.get("logger") is None:
            csv = CSVLogger(self.out, name="logs")
            kwargs["logger"] = [csv, TensorBoardLogger(self.out, name="logs", version=csv.version)]
        return super().instantiate_trainer(**kwargs)

    @property
    def out(self) -> Path:
        return Path(self._get(self.config, "out"))

    def before_fit(self) -> None:
        if (self.out / "model").exists():
            raise InputError(f"{self.out / 'model'}: an earlier run wrote its result there; choose another --out")
        if not self.datamodule.files["val"]:
            rank_zero_info("no data.val: there is no early stopping, and the last weights are exported")
            trainer: Any = self.trainer
            trainer.callbacks = [c for c in trainer.callbacks if getattr(c, "monitor", None) is None]
        self.started = time.perf_counter()

    def after_fit(self) -> None:
        """Export the best weights; the last ones where nothing was monitored. Nothing after a `fast_dev_run`."""
        if self.trainer.global_rank != 0 or getattr(self.trainer, "fast_dev_run", False):
            return
        best = next((c for c in self.trainer.checkpoint_callbacks if getattr(c, "monitor", None)), None)
        path = getattr(best, "best_model_path", "")
        if path:
            load_best(self.model, Path(path))
        score = getattr(best, "best_model_score", None)
        record = TrainingRecord(
            command=self.command,
            data={role: Path(name).name for role, name in self.datamodule.files.items() if name},
            seed=self._get(self.config, "seed_everything"),
            metrics={} if score is None else {self.monitor: float(score)},
            seconds=time.perf_counter() - self.started,
        )
        said = self.export(self.model, self.out / "model", record)
        rank_zero_info(f"{self.out / 'model'}: {said}")
        if (self.out / "logs").is_dir():
            plot_curves(read_curves(self.out), self.out / "curves.png", self.shown)

    def export(self, module: LightningModule, folder: Path, record: TrainingRecord) -> str:
        """Write the result into `folder`; returns one line that says what it is."""
        raise NotImplementedError


def load_best(module: LightningModule, path: Path) -> None:
    """Put the weights of a training checkpoint into `module`, as plain tensors only."""
    module.load_state_dict(read_training_checkpoint(path)["state_dict"])


def run_cli(
    cli: type[TrainingCLI],
    module: type[LightningModule],
    data: type[LightningDataModule],
    arguments: Sequence[str],
    program: str,
) -> None:
    """Parse `arguments` (`fit --config FILE ...`) and run them.

    Raises:
        QgragError: see the modules; the caller prints it.
    """
    cli.command = f"{program} {shlex.join(arguments)}"
    usage = {name: {"usage": f"{program} {name} --config FILE --data.train FILE ..."} for name in cli.subcommands()}
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="LightningCLI's args parameter")
        try:
            cli(
                module,
                data,
                args=list(arguments),
                seed_everything_default=0,
                load_from_checkpoint_support=False,
                auto_configure_optimizers=False,
                save_config_kwargs={"overwrite": True},
                parser_kwargs={"prog": program, "description": cli.about, **usage},
            )
        except MisconfigurationException as error:
            raise ConfigError(str(error)) from error


def _checkpoint_folder(out: str) -> str:
    return str(Path(out) / "checkpoints")


def _seed(value: Any) -> int:
    return int(value)
