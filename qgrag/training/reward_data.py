"""Reward files to batches."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, cast

from pytorch_lightning import LightningDataModule, Trainer
from pytorch_lightning.utilities.rank_zero import rank_zero_info
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from qgrag.errors import InputError
from qgrag.training.reward_batches import TextCollator, VectorCollator
from qgrag.training.reward_examples import RewardExample, read_rewards
from qgrag.training.sampling import Draw, ResumableLoader, ShardedBatchSampler
from qgrag.training.text_encoder import TextEncoder
from qgrag.training.vector_cache import VectorCache

Collate = Callable[[Sequence[Draw]], Any]


class SubgraphData(LightningDataModule):
    """Labelled subgraphs from JSON lines files, as `qgrag data rewards` writes them.

    Args:
        train: file to train on; of every file, questions whose subgraphs are all equally useful are left out.
        val: file to choose the best weights by.
        test: file for `test`.
        batch_size: questions per batch of one process.
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

    def prepare_data(self) -> None:
        """Make the vectors that the cache lacks: in one process, while the others wait."""
        self._read()
        if self._module.encoding == "cached":
            for examples in self.examples.values():
                self._vectors(examples)

    def setup(self, stage: str) -> None:
        self._read()
        if not self._collators:
            self._collators = {name: self._collator(examples) for name, examples in self.examples.items()}

    def _read(self) -> None:
        if self.examples:
            return
        for name, path in self.files.items():
            if path:
                found = read_rewards(path)
                self.examples[name] = [example for example in found if example.informative]
                rank_zero_info(f"{path}: in {len(self.examples[name])} of {len(found)} questions the subgraphs differ")
                if not self.examples[name]:
                    raise InputError(f"{path}: in no question do the subgraphs differ in reward, so none is to choose")

    @property
    def _module(self) -> Any:
        return cast(Trainer, self.trainer).lightning_module

    def _vectors(self, examples: list[RewardExample]) -> tuple[Tensor, Tensor, dict[str, int]]:
        """Of the queries, of all distinct triples, and the row of each triple."""
        cache = VectorCache(self.cache, self._module.embedder)
        self._module.check_width(cache.embedder.dimension)
        texts = list(dict.fromkeys(t for e in examples for s in e.subgraphs for t in s.triples))
        q = cache.encode_queries([e.query for e in examples])
        return q, cache.encode(texts), {text: row for row, text in enumerate(texts)}

    def _collator(self, examples: list[RewardExample]) -> Collate:
        module = self._module
        if module.encoding == "cached":
            return VectorCollator(examples, *self._vectors(examples))
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
