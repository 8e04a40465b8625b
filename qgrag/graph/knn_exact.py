"""Exact nearest neighbours by inner product: low-precision screening, then scores in full precision.

Every pair is multiplied once in the screening dtype (bf16 where the processor has such products, which are three
times as fast there; else float32). The rounding errors of that product are bounded by E, so a pair can only be among
a node's k best if its screened score reaches the node's *bar*: the k-th best screened score seen so far, less 2 E.
Pairs over the bar are kept as candidates, pruned as the bars rise, and scored again in float64 at the end. The result
is exact whatever the bars were; better bars only mean fewer candidates. Where the bars cannot tell candidates apart,
as among many equal vectors, they are scored again whenever they fill their memory, and a node's k best stay.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from qgrag.graph.precision import screening_dtype
from qgrag.graph.ragged import counts_to_ptr
from qgrag.graph.segments import best_of_rows, order_by_score

GROUP = 32
"""Columns whose maximum is compared with the bar at once."""

GROUPS = 2**14
"""Groups over the bar that are looked into at once."""

STRIP = 4096
"""Rows of a block of the product at most."""


class Pairs(NamedTuple):
    """Candidates: ``owner`` and ``other`` int64 ``[M]``, ``score`` float32 ``[M]``."""

    owner: Tensor
    other: Tensor
    score: Tensor


def inner_products(x: Tensor, owner: Tensor, other: Tensor, memory_mb: int) -> Tensor:
    """Inner product of each pair of rows, summed in float64, as float32: the same for a pair whatever the batch."""
    out = torch.empty(owner.numel(), dtype=torch.float32, device=x.device)
    piece = 2**10 if x.device.type == "cpu" else max(1, memory_mb * 2**20 // (20 * max(1, x.size(1))))
    for start in range(0, owner.numel(), piece):
        part = slice(start, start + piece)
        product = x.index_select(0, owner[part]).double().mul_(x.index_select(0, other[part]))
        out[part] = product.sum(1)
    return out


class Screen:
    """The vectors in the screening dtype, the bar of every node and the candidates over it.

    Args:
        x: float32 ``[N, d]``.
        k: neighbours wanted.
        dtype: screening dtype, ``torch.bfloat16`` or ``torch.float32``; the faster one if None.
        memory_mb: bound of block buffers and of candidates, half of it each, in MiB; 2 N k candidates at least, and
            those of the ``GROUPS`` groups in hand beside them.
    """

    def __init__(self, x: Tensor, k: int, dtype: torch.dtype | None, memory_mb: int) -> None:
        dtype = dtype or screening_dtype(x.device.type)
        if dtype not in (torch.bfloat16, torch.float32):
            raise ValueError(f"screen must be torch.bfloat16 or torch.float32; got {dtype}")
        self.x, self.k, self.memory_mb = x, k, memory_mb
        self.rounded = x.to(dtype)
        self.error = screening_error(x, self.rounded)
        self.bar = torch.full((x.size(0),), -torch.inf, device=x.device)
        self._parts: list[Pairs] = []
        self._held = 0
        self._limit = max(2 * k * x.size(0), memory_mb * 2**20 // 2 // 64)
        self.strip = STRIP
        self.columns = max(GROUP, min(2 * STRIP, memory_mb * 2**20 // 2 // (STRIP * 4)) // GROUP * GROUP)

    def raise_bars(self, nodes: Tensor, *, window: int = 2048, rounds: int = 2) -> None:
        """Lower bounds for the k-th best of ``nodes``, from windows of nodes that lie near one another.

        The k-th largest of the maxima over groups of 8 in a node's window bounds its k-th best score from below.
        O(M (M / 64 + window) d) time a round for M nodes.
        """
        window = min(window, nodes.numel() // 8 * 8)
        if self.k * 16 > window:
            return
        generator = torch.Generator().manual_seed(0)
        for _ in range(rounds):
            ordered = self._by_pivot(nodes, generator)
            for start in range(0, ordered.numel(), window):
                part = ordered[max(0, min(start, ordered.numel() - window)) :][:window]
                block = self.rounded[part] @ self.rounded[part].t()
                block.fill_diagonal_(-torch.inf)
                best = block.view(window, 8, window // 8).amax(1).float().topk(self.k, dim=1).values[:, -1]
                self.bar[part] = torch.maximum(self.bar[part], best - 2 * self.error)

    def _by_pivot(self, nodes: Tensor, generator: torch.Generator) -> Tensor:
        """``nodes`` sorted by the nearest of M / 64 random pivots, and those by the nearest of some of their own."""
        pivots = nodes[torch.randperm(nodes.numel(), generator=generator)[: nodes.numel() // 64 + 1].to(nodes.device)]
        fine = self.rounded[pivots]
        coarse = (fine @ fine[: int(len(fine) ** 0.5) + 1].t()).argmax(1)
        nearest = torch.cat([(self.rounded[part] @ fine.t()).argmax(1) for part in nodes.split(STRIP)])
        return nodes[torch.argsort(coarse[nearest] * len(fine) + nearest)]

    def multiply(self, rows: Tensor, cols: Tensor, *, both: bool) -> None:
        """Collects candidates of ``rows`` among ``cols``, and with ``both`` of ``cols`` among ``rows``.

        ``rows`` and ``cols`` are node ids; a node is no candidate of itself.
        """
        buffer = self.rounded.new_empty(STRIP * self.columns)
        for chunk in cols.split(self.columns):
            padded = _pad(chunk)
            width = padded.numel() // GROUP
            lowest = torch.where(padded < 0, torch.inf, self.bar[padded]).view(GROUP, width).amin(0) if both else None
            right = self.rounded[padded].t()
            for strip in rows.split(STRIP):
                block = buffer[: strip.numel() * padded.numel()].view(strip.numel(), padded.numel())
                torch.mm(self.rounded[strip], right, out=block)
                self._collect(block, strip, padded, width, lowest)

    def _collect(self, block: Tensor, rows: Tensor, cols: Tensor, width: int, lowest: Tensor | None) -> None:
        best = block.view(rows.numel(), GROUP, width).amax(1).float()
        not_others = 2  # the row itself, and the vector that stands in for padding
        if width >= self.k + not_others and bool(torch.isinf(self.bar[rows]).any()):
            kth = best.topk(self.k + not_others, dim=1).values[:, -1]
            self.bar[rows] = torch.maximum(self.bar[rows], kth - 2 * self.error)
        bar = self.bar[rows][:, None].expand_as(best)
        if lowest is not None:
            bar = torch.minimum(bar, lowest)
        grouped = block.view(rows.numel(), GROUP, width).transpose(1, 2)
        for over in (best >= bar).nonzero().split(GROUPS):
            row, group = over.unbind(1)
            score = grouped[row, group]
            hit, place = (score >= bar[row, group][:, None].to(score.dtype)).nonzero().unbind(1)
            self._take(rows[row[hit]], cols[place * width + group[hit]], score[hit, place].float(), lowest is not None)

    def _take(self, row: Tensor, col: Tensor, score: Tensor, both: bool) -> None:
        real = (col >= 0) & (row != col)
        for owner, other in ((row, col), (col, row)) if both else ((row, col),):
            take = (real & (score >= self.bar[owner])).nonzero().squeeze(1)
            self._add(Pairs(owner[take], other[take], score[take]))

    def _add(self, pairs: Pairs) -> None:
        self._parts.append(pairs)
        self._held += pairs.owner.numel()
        if self._held > self._limit:
            pruned = self._prune()
            if pruned.owner.numel() > self._limit // 2:
                self._hold(self._first(self._rescored(pruned)))

    def _hold(self, pairs: Pairs) -> None:
        self._parts, self._held = [pairs], pairs.owner.numel()

    def _prune(self) -> Pairs:
        """Drops candidates under the bars that the candidates themselves raise."""
        owner, other, score = (torch.cat(tensors) for tensors in zip(*self._parts, strict=True))
        order = order_by_score(owner, score)
        owner, other, score = owner[order], other[order], score[order]
        counts = torch.bincount(owner, minlength=self.bar.numel())
        full = (counts >= self.k).nonzero().squeeze(1)
        kth = score[counts_to_ptr(counts)[full] + self.k - 1]
        self.bar[full] = torch.maximum(self.bar[full], kth - 2 * self.error)
        kept = score >= self.bar[owner]
        pairs = Pairs(owner[kept], other[kept], score[kept])
        self._hold(pairs)
        return pairs

    def best(self, extra: Pairs | None = None) -> Pairs:
        """The k best pairs of each owner in full precision, by owner, score, id; ``extra`` competes as scored."""
        empty = self.bar.new_empty(0, dtype=torch.int64)
        pairs = self._prune() if self._parts else Pairs(empty, empty, self.bar[:0])
        pairs = self._rescored(pairs)
        if extra is not None:
            pairs = Pairs(*(torch.cat(tensors) for tensors in zip(extra, pairs, strict=True)))
        return self._first(pairs)

    def _rescored(self, pairs: Pairs) -> Pairs:
        return pairs._replace(score=inner_products(self.x, pairs.owner, pairs.other, self.memory_mb))

    def _first(self, pairs: Pairs) -> Pairs:
        kept = best_of_rows(pairs.owner, pairs.other, pairs.score, self.k)
        return Pairs(pairs.owner[kept], pairs.other[kept], pairs.score[kept])


def _pad(chunk: Tensor) -> Tensor:
    """Node ids laid out so that strided groups hold neighbours in ``chunk``'s order; padded with -1."""
    padded = torch.nn.functional.pad(chunk, (0, -chunk.numel() % GROUP), value=-1)
    return padded.view(-1, GROUP).t().reshape(-1)


def screening_error(x: Tensor, rounded: Tensor) -> float:
    """E: bound of the difference between a screened and a true inner product of any two rows.

    Cauchy-Schwarz over what rounding took from the rows, plus the rounding of the product itself: half a unit in
    the last place on CPU (oneDNN sums bf16 in float32); on CUDA partial sums may be rounded too, up to 8 times.
    """
    if x.numel() == 0:
        return 0.0
    norm = float(x.norm(dim=1).max())
    lost = max(float((x[i : i + STRIP] - rounded[i : i + STRIP]).norm(dim=1).max()) for i in range(0, len(x), STRIP))
    unit = 2.0**-23 * x.size(1) + (2.0**-9 if rounded.dtype == torch.bfloat16 else 0.0)
    if x.device.type == "cuda":
        tf32 = rounded.dtype == torch.float32 and torch.backends.cuda.matmul.allow_tf32
        unit = max(8 * unit, 2.0**-9 if tf32 else 0.0)
    return lost * (2 * norm + lost) + unit * (norm + lost) ** 2
