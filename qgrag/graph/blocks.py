"""Independent blocks of a batch, side by side on the processor's cores."""

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import torch

Block = TypeVar("Block")
Answer = TypeVar("Answer")


def concurrent_blocks(device: torch.device) -> int:
    """How many blocks :func:`run_blocks` has in hand at once: torch's threads on CPU, else 1."""
    return torch.get_num_threads() if device.type == "cpu" else 1


def run_blocks(function: Callable[[Block], Answer], blocks: Iterable[Block], device: torch.device) -> list[Answer]:
    """``function`` of every block, in the order of the blocks.

    Sorts, gathers and scatters of a block that fits the cache gain little from the threads inside of an operation;
    on CPU each block gets one thread instead, as many blocks at once as torch has threads.
    """
    blocks = list(blocks)
    threads = min(concurrent_blocks(device), len(blocks))
    if threads <= 1:
        return [function(block) for block in blocks]
    inside = torch.get_num_threads()
    try:
        with ThreadPoolExecutor(threads, initializer=torch.set_num_threads, initargs=(1,)) as pool:
            return list(pool.map(function, blocks))
    finally:
        torch.set_num_threads(inside)  # threads started later would inherit the workers' setting
