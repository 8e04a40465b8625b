"""The dtype in which products that are only screened, and scored again afterwards, run fastest."""

import time
from functools import cache

import torch


@cache
def screening_dtype(device_type: str) -> torch.dtype:
    """bfloat16 where the device multiplies it faster than float32, else float32; decided once per process.

    A CPU is timed (about 50 ms): torch computes bfloat16 products on every CPU, but a CPU without an instruction for
    them takes a hundred times as long as in float32. CUDA is asked.

    Args:
        device_type: `cpu` or `cuda`.
    """
    if device_type == "cuda":
        return torch.bfloat16 if torch.cuda.is_bf16_supported(including_emulation=False) else torch.float32
    sample = torch.ones(128, 384, device=device_type)
    seconds = {dtype: _product_seconds(sample.to(dtype)) for dtype in (torch.bfloat16, torch.float32)}
    return min(seconds, key=lambda dtype: seconds[dtype])


def _product_seconds(x: torch.Tensor) -> float:
    """Best of three products, after one that warms up."""
    times = []
    for _ in range(4):
        start = time.perf_counter()
        x @ x.T
        times.append(time.perf_counter() - start)
    return min(times[1:])
