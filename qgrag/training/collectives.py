"""Batches of several processes as one, with gradients."""

from typing import NamedTuple

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed.nn.functional import all_gather


class Gathered(NamedTuple):
    """Args:
    vectors: float [P, dim], passages of all processes, each process's padded to the longest.
    keys: int64 [P, 2], their keys; (-1, -1) in the padding.
    offset: row at which this process's own passages begin.
    """

    vectors: Tensor
    keys: Tensor
    offset: int


def gather_passages(vectors: Tensor, keys: Tensor) -> Gathered:
    """Passages of all processes; of this one alone where training is not distributed.

    Gradients flow back to the process that made a vector, summed over the processes that used it; DDP's averaging
    then gives the gradient of the mean loss over all queries.

    Args:
        vectors: float [p, dim]; p may differ between processes.
        keys: int64 [p, 2].
    """
    if not (dist.is_available() and dist.is_initialized()) or dist.get_world_size() == 1:
        return Gathered(vectors, keys, 0)
    count = torch.tensor([len(vectors)], device=vectors.device)
    dist.all_reduce(count, dist.ReduceOp.MAX)
    longest = int(count)
    padding = longest - len(vectors)
    vectors = torch.nn.functional.pad(vectors, (0, 0, 0, padding))
    keys = torch.nn.functional.pad(keys, (0, 0, 0, padding), value=-1)
    all_keys = [torch.empty_like(keys) for _ in range(dist.get_world_size())]
    dist.all_gather(all_keys, keys)
    return Gathered(torch.cat(all_gather(vectors)), torch.cat(all_keys), dist.get_rank() * longest)
