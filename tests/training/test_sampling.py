import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qgrag.errors import InputError
from qgrag.training.sampling import ResumableLoader, ShardedBatchSampler


class Examples:
    def __getitem__(self, draw):
        return draw.example


def epoch_of(sampler, epoch):
    sampler.set_epoch(epoch)
    return [[draw.example for draw in batch] for batch in sampler]


@settings(deadline=None, max_examples=40)
@given(st.integers(1, 60), st.integers(1, 5), st.integers(1, 3), st.integers(0, 5), st.integers(0, 3))
def test_processes_share_out_what_one_would_take(size, batch, world, seed, epoch):
    if size < batch * world:
        with pytest.raises(InputError, match="do not fill one batch"):
            ShardedBatchSampler(size, batch, seed, 0, world)
        return
    whole = epoch_of(ShardedBatchSampler(size, batch * world, seed), epoch)
    parts = [epoch_of(ShardedBatchSampler(size, batch, seed, rank, world), epoch) for rank in range(world)]
    assert [[e for part in parts for e in part[i]] for i in range(len(whole))] == whole
    seen = [example for b in whole for example in b]
    assert len(set(seen)) == len(seen) == size // (batch * world) * batch * world


def test_epochs_and_seeds_differ():
    sampler = ShardedBatchSampler(50, 5, seed=1)
    assert epoch_of(sampler, 0) != epoch_of(sampler, 1)
    assert epoch_of(sampler, 0) == epoch_of(ShardedBatchSampler(50, 5, seed=1), 0)
    assert epoch_of(sampler, 0) != epoch_of(ShardedBatchSampler(50, 5, seed=2), 0)


@pytest.mark.parametrize("workers", [0, 1])
def test_state_counts_what_was_taken_and_not_what_was_fetched_ahead(workers):
    def make():
        sampler = ShardedBatchSampler(30, 3, seed=0)
        return ResumableLoader(Examples(), batch_sampler=sampler, collate_fn=list, num_workers=workers)

    first = make()
    first.batch_sampler.set_epoch(2)
    iterator = iter(first)
    taken = [next(iterator) for _ in range(4)]
    state = first.state_dict()
    assert state == {"epoch": 2, "consumed": 4}
    second = make()
    second.load_state_dict(state)
    second.batch_sampler.set_epoch(2)
    rest = list(second)
    assert taken + rest == epoch_of(ShardedBatchSampler(30, 3, seed=0), 2)
    second.batch_sampler.set_epoch(3)
    assert list(second) == epoch_of(ShardedBatchSampler(30, 3, seed=0), 3)
