"""Contenders timed in turn, memory peaks, and what the machine itself can do."""

import ctypes
import gc
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.nn.functional import embedding_bag

TURN_SECONDS = 0.1
"""Shortest turn of a contender: a call of a millisecond in caches that another contender left says little."""


@dataclass
class Contender:
    """One way to do a job: ``run`` answers ``work`` queries (or builds ``work`` things) a call."""

    name: str
    run: Callable[[], Any]
    work: float = 1
    note: str = ""


@dataclass
class Result:
    """What a race showed of one contender; ``speedup`` is ours over it, the median of the rounds.

    ``cpu_seconds`` sums over all threads of this process.
    """

    name: str
    seconds: float
    cpu_seconds: float
    per_second: float
    speedup: float | None
    speedup_range: tuple[float, float] | None
    peak_mb: float
    note: str
    answer: Any = field(repr=False)


def race(contenders: list[Contender], rounds: int, device: torch.device) -> list[Result]:
    """Times the first contender (ours) and its peers in turn, ``rounds`` times, each round from another start.

    A contender whose call is shorter than ``TURN_SECONDS`` is called again until its turn lasts about that long.
    """
    times: dict[str, list[float]] = {one.name: [] for one in contenders}
    work: dict[str, list[float]] = {one.name: [] for one in contenders}
    answers = {}
    peaks = {}
    calls = {}
    for one in contenders:
        began = time.perf_counter()
        peaks[one.name], answers[one.name] = peak_memory(one.run, device)
        short = time.perf_counter() - began < TURN_SECONDS
        calls[one.name] = max(1, round(TURN_SECONDS / best_seconds(one.run, device, 1))) if short else 1
    for turn in range(rounds):
        start = turn % len(contenders)
        for one in contenders[start:] + contenders[:start]:
            done = one.work * calls[one.name]
            began, busy = time.perf_counter(), time.process_time()
            for _ in range(calls[one.name]):
                one.run()
            synchronize(device)
            work[one.name].append((time.process_time() - busy) / done)
            times[one.name].append((time.perf_counter() - began) / done)
    ours = times[contenders[0].name]
    results = []
    for one in contenders:
        ratios = [peer / own for peer, own in zip(times[one.name], ours, strict=True)]
        is_peer = one is not contenders[0]
        unit = statistics.median(times[one.name])
        results.append(
            Result(
                name=one.name,
                seconds=unit,
                cpu_seconds=statistics.median(work[one.name]),
                per_second=1 / unit,
                speedup=statistics.median(ratios) if is_peer else None,
                speedup_range=(min(ratios), max(ratios)) if is_peer else None,
                peak_mb=peaks[one.name],
                note=one.note,
                answer=answers[one.name],
            )
        )
    return results


def synchronize(device: torch.device) -> None:
    """Waits for the device's queue."""
    if device.type == "cuda":
        torch.cuda.synchronize()


def peak_memory(run: Callable[[], Any], device: torch.device) -> tuple[float, Any]:
    """Runs once (which also warms up); MiB above the start at the highest, and the answer."""
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats()
        start = torch.cuda.memory_allocated()
        answer = run()
        return (torch.cuda.max_memory_allocated() - start) / 2**20, answer
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")
    start = _status("VmRSS")
    answer = run()
    return max(0.0, (_status("VmHWM") - start) / 1024), answer


def _status(key: str) -> int:
    """A line of /proc/self/status, in KiB."""
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith(key))


def best_seconds(run: Callable[[], Any], device: torch.device, repeats: int = 7) -> float:
    """The fastest of some runs: for limits, where noise only ever slows."""
    times = []
    for _ in range(repeats):
        began = time.perf_counter()
        run()
        synchronize(device)
        times.append(time.perf_counter() - began)
    return min(times)


def machine_limits(device: torch.device) -> dict[str, float]:
    """Copy in GB/s, gathers in million rows/s, products in GFLOP/s: the best of several runs."""
    a = torch.rand(2**26, device=device)
    b = torch.empty_like(a)
    copy = best_seconds(lambda: b.copy_(a), device)
    flat, place = torch.rand(2_000_000, device=device), torch.randint(0, 2_000_000, (4_000_000,), device=device)
    single = best_seconds(lambda: flat.index_select(0, place), device)
    limits = {
        "copy_gb_s": 2 * a.numel() * 4 / copy / 1e9,
        "gather32_mrows_s": gather_rate(100_000, device),
        "gather32_1m_mrows_s": gather_rate(1_000_000, device),
        "gather1_mrows_s": place.numel() / single / 1e6,
    }
    for name, dtype in (("gemm_f32_gflop_s", torch.float32), ("gemm_bf16_gflop_s", torch.bfloat16)):
        left = torch.rand(4096, 384, device=device).to(dtype)
        right = torch.rand(384, 8192, device=device).to(dtype)
        target = torch.empty(4096, 8192, device=device, dtype=dtype)
        seconds = best_seconds(lambda left=left, right=right, target=target: torch.mm(left, right, out=target), device)
        limits[name] = 2 * 4096 * 384 * 8192 / seconds / 1e9
    return limits


def gather_rate(rows: int, device: torch.device) -> float:
    """Million random rows of 32 floats a second that are read out of so many and summed by twenty."""
    table = torch.rand(rows, 32, device=device)
    index = torch.randint(0, rows, (20 * 2**17,), dtype=torch.int32, device=device)
    ends = torch.arange(0, index.numel() + 1, 20, dtype=torch.int32, device=device)
    seconds = best_seconds(lambda: embedding_bag(index, table, ends, mode="sum", include_last_offset=True), device)
    return index.numel() / seconds / 1e6
