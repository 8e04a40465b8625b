"""Reward files to batches."""

import logging
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, cast

from pytorch_lightning import LightningDataModule, Trainer
from torch.utils.data import DataLoader, Dataset

from qgrag.errors import InputError
from qgrag.training.reward_batches import TextCollator, VectorCollator
from qgrag.training.reward_examples import RewardExample, read_rewards
from qgrag.training.sampling import Draw, ResumableLoader, ShardedBatchSampler
from qgrag.training.text_encoder import TextEncoder
from qgrag.training.vector_cache import VectorCache

logger = logging.getLogger(__name__)

Collate = Callable[[Sequence[Draw]], Any]


class SubgraphData(LightningDataModule):
    """Labelled subgraphs from JSON lines files, as `qgrag data rewards` writes them.

    Args:
        train: file to train on; questions whose subgraphs are all equally useful are left out.
        val: file to choose the best weights by.
        test: file for `test`.
        batch_size: questions a batch of one process.
        cache: folder of the vectors of queries and triples, for `encoding: cached`.
        num_workers: processes that make batches.
        seed: of the order.
    """

    def __init__(
        self,
        train: str,
        val: str | None = None,
        test: str | None = None,
        batch_size: int = 32,
        cache: str = "runs/vectors",
        num_workers: int = 0,
        seed: int = 0,
    ) -> None:
        super().__init__()
        self.files = {"train": train, "val": val, "test": test}
        self.batch_size, self.cache, self.num_workers, self.seed = batch_size, Path(cache), num_workers, seed
        self.examples: dict[str, list[RewardExample]] = {}
        self._collators: dict[str, Collate] = {}

    def setup(self, stage: str) -> None:
        if self.examples:
            return
        self.examples = {name: read_rewards(path) for name, path in self.files.items() if path}
        useful = [example for example in self.examples["train"] if example.informative]
        logger.info("%d of %d training questions are informative", len(useful), len(self.examples["train"]))
        self.examples["train"] = useful
        self._collators = {name: self._collator(examples) for name, examples in self.examples.items()}

    def _collator(self, examples: list[RewardExample]) -> Collate:
        module = cast(Any, cast(Trainer, self.trainer).lightning_module)
        if module.encoding == "cached":
            cache = VectorCache(self.cache, module.embedder)
            texts = dict.fromkeys(t for e in examples for s in e.subgraphs for t in s.triples)
            q = cache.encode_queries([e.query for e in examples])
            return VectorCollator(examples, q, cache.encode(list(texts)), {t: i for i, t in enumerate(texts)})
        encoder: TextEncoder = module.encoder
        as_one_text = module.model.config.items == "tokens"
        return TextCollator(examples, encoder.tokenize_queries, encoder.tokenize_passages, as_one_text)

    def train_dataloader(self) -> ResumableLoader:
        trainer = cast(Trainer, self.trainer)
        size = len(self.examples["train"])
        sampler = ShardedBatchSampler(size, self.batch_size, self.seed, trainer.global_rank, trainer.world_size)
        return ResumableLoader(
            _Draws(), batch_sampler=sampler, collate_fn=self._collators["train"], num_workers=self.num_workers
        )

    def val_dataloader(self) -> DataLoader[Any] | list[Any]:
        return self._loader("val") if self.files["val"] else []

    def test_dataloader(self) -> DataLoader[Any]:
        if not self.files["test"]:
            raise InputError("data.test names no file; give one, or run validate")
        return self._loader("test")

    def _loader(self, name: str) -> DataLoader[Any]:
        trainer = cast(Trainer, self.trainer)
        share = range(trainer.global_rank, len(self.examples[name]), trainer.world_size)
        return DataLoader(
            [Draw(0, i) for i in share],  # type: ignore[arg-type]
            batch_size=self.batch_size,
            collate_fn=self._collators[name],
            num_workers=self.num_workers,
        )


class _Draws(Dataset[Draw]):
    """The draws themselves; collators look the examples up."""

    def __getitem__(self, draw: Draw) -> Draw:
        return draw
