"""Pair files to batches for training and to search tasks for validation and test."""

from collections.abc import Sequence
from functools import partial
from typing import Any, cast

import torch
from pytorch_lightning import LightningDataModule, Trainer
from torch.utils.data import DataLoader

from qgrag.errors import InputError
from qgrag.training.pair_batches import PairCollator, PairDataset, Tokenize
from qgrag.training.pairs import TrainingPair, read_pairs
from qgrag.training.sampling import ResumableLoader, ShardedBatchSampler
from qgrag.training.search_set import SearchBatch, SearchSet, search_set
from qgrag.training.text_encoder import TextEncoder


class PairData(LightningDataModule):
    """Pairs from JSON lines files, as `qgrag data pairs` writes them.

    Args:
        train: file to train on.
        val: file whose queries are searched for after each epoch, among the passages of all files.
        test: the same for `test`.
        batch_size: queries a batch of one process.
        negatives: given negatives drawn for a query, at most.
        eval_batch_size: texts encoded together in validation and test.
        num_workers: processes that tokenize.
        seed: of the order and the draws.
    """

    def __init__(
        self,
        train: str,
        val: str | None = None,
        test: str | None = None,
        batch_size: int = 32,
        negatives: int = 1,
        eval_batch_size: int = 64,
        num_workers: int = 0,
        seed: int = 0,
    ) -> None:
        super().__init__()
        if negatives < 0:
            raise InputError(f"data.negatives must be at least 0, not {negatives}")
        self.files = {"train": train, "val": val, "test": test}
        self.batch_size, self.negatives, self.eval_batch_size = batch_size, negatives, eval_batch_size
        self.num_workers, self.seed = num_workers, seed
        self.pairs: dict[str, list[TrainingPair]] = {}

    def setup(self, stage: str) -> None:
        self.pairs = {name: read_pairs(path) for name, path in self.files.items() if path}
        self.encoder = cast(TextEncoder, cast(Trainer, self.trainer).lightning_module.encoder)

    def train_dataloader(self) -> ResumableLoader:
        dataset = PairDataset(self.pairs["train"], self.negatives, self.seed)
        trainer = cast(Trainer, self.trainer)
        sampler = ShardedBatchSampler(len(dataset), self.batch_size, self.seed, trainer.global_rank, trainer.world_size)
        collate = PairCollator(self.encoder.tokenize_queries, self.encoder.tokenize_passages)
        return ResumableLoader(dataset, batch_sampler=sampler, collate_fn=collate, num_workers=self.num_workers)

    def val_dataloader(self) -> list[DataLoader[Any]]:
        return self._search_loaders("val") if self.files["val"] else []

    def test_dataloader(self) -> list[DataLoader[Any]]:
        if not self.files["test"]:
            raise InputError("data.test names no file; give one, or run validate")
        return self._search_loaders("test")

    def task(self, name: str) -> SearchSet:
        """The queries of file `name` against the passages of all files."""
        others = [pair for other, pairs in self.pairs.items() if other != name for pair in pairs]
        return search_set(self.pairs[name], others)

    def _search_loaders(self, name: str) -> list[DataLoader[Any]]:
        task = self.task(name)
        return [
            self._text_loader(task.queries, self.encoder.tokenize_queries),
            self._text_loader(task.passages, self.encoder.tokenize_passages),
        ]

    def _text_loader(self, texts: Sequence[str], tokenize: Tokenize) -> DataLoader[Any]:
        """This process's share of the texts, long ones together so that little is padded."""
        order = sorted(range(len(texts)), key=lambda i: len(texts[i]))
        trainer = cast(Trainer, self.trainer)
        share = order[trainer.global_rank :: trainer.world_size]
        return DataLoader(
            [(i, texts[i]) for i in share],  # type: ignore[arg-type]
            batch_size=self.eval_batch_size,
            collate_fn=partial(_collate_texts, tokenize),
            num_workers=self.num_workers,
        )


def _collate_texts(tokenize: Tokenize, items: Sequence[tuple[int, str]]) -> SearchBatch:
    return SearchBatch(torch.tensor([i for i, _ in items]), tokenize([text for _, text in items]))
