"""Files of evidence pools to batches, several corpora in one run."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple, cast

import torch
from pytorch_lightning import LightningDataModule, Trainer
from pytorch_lightning.utilities.rank_zero import rank_zero_info
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from qgrag.errors import InputError
from qgrag.models.evidence import EvidenceInputs
from qgrag.retrieval.methods.auto.features import MEMBER_FEATURES, MEMBER_QUESTION_FEATURES
from qgrag.training.evidence_pools import EvidencePools, join_pools, load_pools
from qgrag.training.sampling import Draw, ResumableLoader, ShardedBatchSampler


class EvidenceBatch(NamedTuple):
    """A batch of B pools.

    Args:
        inputs: what the model reads.
        gold: int16 [B, K], see `EvidencePools`.
        wanted: int16 [B].
    """

    inputs: EvidenceInputs
    gold: Tensor
    wanted: Tensor


class EvidencePoolData(LightningDataModule):
    """Evidence pools from files, as `qgrag data evidence` writes them.

    Every epoch takes the same number of questions of each training file, whatever its size, so that no corpus drowns
    the others; a small one comes round several times.

    Args:
        train: files to train on.
        val: files of corpora to choose the best weights by; the mean over the files is what counts.
        test: files for `test`.
        per_corpus: questions of each training file per epoch.
        batch_size: questions per batch of one process.
        member_dropout: chance that a member's own features are left out of a training pool, so that the model does not
            lean on one retriever.
        num_workers: processes that make batches.
        seed: of the order and of what is left out.
    """

    def __init__(
        self,
        train: list[str],
        val: list[str] | None = None,
        test: list[str] | None = None,
        per_corpus: int = 400,
        batch_size: int = 16,
        member_dropout: float = 0.1,
        num_workers: int = 0,
        seed: int = 0,
    ) -> None:
        super().__init__()
        if per_corpus < 1 or not 0 <= member_dropout < 1:
            raise InputError(
                "data.per_corpus must be at least 1 and data.member_dropout from 0 to below 1, "
                f"not {per_corpus} and {member_dropout}"
            )
        self.named = {"train": train, "val": val or [], "test": test or []}
        self.files = {role: ", ".join(names) for role, names in self.named.items()}
        self.per_corpus, self.batch_size, self.num_workers, self.seed = per_corpus, batch_size, num_workers, seed
        self.member_dropout = member_dropout
        self.pools: dict[str, list[EvidencePools]] = {}

    def setup(self, stage: str) -> None:
        if self.pools:
            return
        for role, names in self.named.items():
            self.pools[role] = [load_pools(Path(name)) for name in names]
            for name, pools in zip(names, self.pools[role], strict=True):
                rank_zero_info(f"{name}: {len(pools)} questions; their pools hold {pools.ceiling:.1%} of the evidence")
        self._check()

    @property
    def first(self) -> EvidencePools:
        """One of the pools, for what all of them share."""
        return next(pools for role in self.pools.values() for pools in role)

    def _check(self) -> None:
        if not any(self.pools.values()):
            raise InputError("no file of pools is named; give data.train, or data.test for a test")
        first = self.first
        for role, names in self.named.items():
            for name, pools in zip(names, self.pools[role], strict=True):
                if not len(pools):
                    raise InputError(f"{name}: holds no question")
                if _kind(pools) != _kind(first):
                    raise InputError(
                        f"{name}: its pools have other members, features, depth, size or texts than the other files'"
                    )
        if self.pools["train"] and not any((pools.gold > 0).any() for pools in self.pools["train"]):
            raise InputError("data.train: no pool holds a gold document, so there is nothing to learn")

    def train_dataloader(self) -> ResumableLoader:
        trainer = cast(Trainer, self.trainer)
        collate = _TrainCollator(self.pools["train"], self.per_corpus, self.seed, self.member_dropout)
        sampler = ShardedBatchSampler(len(collate), self.batch_size, self.seed, trainer.global_rank, trainer.world_size)
        return ResumableLoader(_Draws(), batch_sampler=sampler, collate_fn=collate, num_workers=self.num_workers)

    def val_dataloader(self) -> list[DataLoader[Any]]:
        return [self._loader(pools) for pools in self.pools["val"]]

    def test_dataloader(self) -> list[DataLoader[Any]]:
        if not self.pools["test"]:
            raise InputError("data.test names no file; give one, or run validate")
        return [self._loader(pools) for pools in self.pools["test"]]

    def _loader(self, pools: EvidencePools) -> DataLoader[Any]:
        trainer = cast(Trainer, self.trainer)
        share = list(range(trainer.global_rank, len(pools), trainer.world_size))
        return DataLoader(share, batch_size=4 * self.batch_size, collate_fn=_Collator(pools))  # type: ignore[arg-type]


def _kind(pools: EvidencePools) -> tuple[Any, ...]:
    """What all files of a run must share."""
    dimension = pools.items.shape[-1] if pools.items is not None else 0
    return pools.members, pools.features, pools.depth, pools.size, dimension


class _Collator:
    """Rows of one file to a batch."""

    def __init__(self, pools: EvidencePools) -> None:
        self._pools = pools

    def __call__(self, rows: Sequence[int]) -> EvidenceBatch:
        return joined_batch([self._pools.take(rows)])


class _TrainCollator:
    """Draws to a batch of several files: draw i is a question of file i // `per_corpus`, another one in each epoch."""

    def __init__(self, pools: Sequence[EvidencePools], per_corpus: int, seed: int, member_dropout: float) -> None:
        self._pools, self._per_corpus, self._seed = pools, per_corpus, seed
        self._member_dropout = member_dropout

    def __len__(self) -> int:
        return len(self._pools) * self._per_corpus

    def __call__(self, draws: Sequence[Draw]) -> EvidenceBatch:
        rows: dict[int, list[int]] = {}
        for epoch, number in draws:
            corpus, place = divmod(number, self._per_corpus)
            rows.setdefault(corpus, []).append(self._row(corpus, epoch * self._per_corpus + place))
        batch = joined_batch([self._pools[corpus].take(own) for corpus, own in sorted(rows.items())])
        chance = torch.Generator().manual_seed((self._seed * 1_000_003 + draws[0].epoch) * 1_000_003 + draws[0].example)
        return batch._replace(inputs=without_members(batch.inputs, self._pools[0], self._member_dropout, chance))

    def _row(self, corpus: int, drawn: int) -> int:
        """The question of a corpus that is its `drawn`-th since the run began: each round is a new permutation."""
        size = len(self._pools[corpus])
        turn, place = divmod(drawn, size)
        order = torch.Generator().manual_seed((self._seed * 4099 + corpus) * 1_000_003 + turn)
        return int(torch.randperm(size, generator=order)[place])


def joined_batch(parts: Sequence[EvidencePools]) -> EvidenceBatch:
    """Questions of several files as one batch, cut to the widest pool."""
    pools = join_pools(parts)
    return EvidenceBatch(pools.inputs(), pools.gold, pools.wanted)


def without_members(
    inputs: EvidenceInputs, pools: EvidencePools, share: float, chance: torch.Generator
) -> EvidenceInputs:
    """The inputs with each member's own features set to 0 in a share of the pools, drawn by member and pool."""
    if not share:
        return inputs
    candidate, question = inputs.candidate.clone(), inputs.question.clone()
    left_out = torch.rand(len(candidate), len(pools.members), generator=chance) < share
    per, own = len(MEMBER_FEATURES), len(MEMBER_QUESTION_FEATURES)
    for member in range(len(pools.members)):
        rows = left_out[:, member]
        candidate[rows, :, member * per : (member + 1) * per] = 0
        question[rows, member * own : (member + 1) * own] = 0
    return inputs.with_candidate(candidate, question)


class _Draws(Dataset[Draw]):
    """The draws themselves; the collator looks the pools up."""

    def __getitem__(self, draw: Draw) -> Draw:
        return draw
