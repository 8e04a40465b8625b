"""Splits by group: what belongs together is never on both sides."""

import hashlib
from collections.abc import Callable, Sequence
from typing import TypeVar

from qgrag.errors import InputError

T = TypeVar("T")


def split_by_group(items: Sequence[T], group: Callable[[T], str], shares: Sequence[float], seed: int) -> list[list[T]]:
    """Parts of `items`, each group whole in one of them.

    Groups are put in an order that depends on their name and the seed alone, and dealt out so that each part gets
    its share of the groups, and at least one.

    Args:
        items: examples, in any order; each part keeps it.
        group: name of an example's group.
        shares: of each part, above 0, adding up to 1.
        seed: another one gives another split.

    Raises:
        InputError: bad shares, or fewer groups than parts.
    """
    if any(share <= 0 for share in shares) or abs(sum(shares) - 1) > 1e-6:
        raise InputError(f"the shares of a split have to be above 0 and add up to 1, not {list(shares)}")
    names = sorted({group(item) for item in items}, key=lambda name: _order(name, seed))
    if len(names) < len(shares):
        raise InputError(f"{len(names)} groups cannot be split into {len(shares)} parts without tearing one apart")
    part_of = {}
    start, total = 0, 0.0
    for part, share in enumerate(shares):
        total += share
        rest = len(shares) - part - 1
        end = min(max(round(total * len(names)), start + 1), len(names) - rest)
        part_of.update(dict.fromkeys(names[start:end], part))
        start = end
    parts: list[list[T]] = [[] for _ in shares]
    for item in items:
        parts[part_of[group(item)]].append(item)
    return parts


def _order(name: str, seed: int) -> bytes:
    return hashlib.blake2b(f"{seed}\x00{name}".encode(), digest_size=16).digest()
