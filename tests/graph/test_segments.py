"""Operations on segments against plain loops over Python lists."""

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from qgrag.graph import Ragged
from qgrag.graph.segments import (
    best_of_rows,
    contains,
    distinct_in_rows,
    first_of_each,
    pool_pairs,
    rank_within,
    reduce_segments,
    sorted_distinct,
    top_pairs,
    top_per_group,
)

GROUPS, ITEMS = 5, 6
Entries = list[tuple[int, int, float]]
ENTRIES = st.lists(
    st.tuples(st.integers(0, GROUPS - 1), st.integers(0, ITEMS - 1), st.sampled_from([-1.5, 0.0, 0.25, 0.5, 2.0])),
    max_size=40,
)
checked = settings(deadline=None, max_examples=60, derandomize=True)


def columns(entries: Entries) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    group = torch.tensor([e[0] for e in entries], dtype=torch.long)
    item = torch.tensor([e[1] for e in entries], dtype=torch.long)
    return group, item, torch.tensor([e[2] for e in entries], dtype=torch.float32)


def members(entries: Entries, group: int) -> list[int]:
    return [place for place, entry in enumerate(entries) if entry[0] == group]


@checked
@given(ENTRIES)
def test_reductions(entries: Entries) -> None:
    group, _, score = columns(entries)
    for name, function in {"sum": sum, "max": max, "mean": lambda values: sum(values) / len(values)}.items():
        told = [[entries[place][2] for place in members(entries, g)] for g in range(GROUPS)]
        expected = torch.tensor([float(function(values)) if values else 0.0 for values in told])
        torch.testing.assert_close(reduce_segments(score, group, GROUPS, name), expected)
        wide = reduce_segments(torch.stack([score, score]), group, GROUPS, name, dim=1)
        torch.testing.assert_close(wide[1], expected)


@checked
@given(ENTRIES, st.integers(1, 4))
def test_best_of_each_group(entries: Entries, k: int) -> None:
    group, _, score = columns(entries)
    ranked = [sorted(members(entries, g), key=lambda p: (-entries[p][2], p)) for g in range(GROUPS)]
    ranks = {place: rank for row in ranked for rank, place in enumerate(row)}
    assert rank_within(group, score, GROUPS).tolist() == [ranks[place] for place in range(len(entries))]
    assert top_per_group(group * 7 - 3, score, k).tolist() == [place for row in ranked for place in row[:k]]


@checked
@given(ENTRIES, st.integers(1, 4))
def test_best_of_rows_break_ties_by_item(entries: Entries, k: int) -> None:
    group, item, score = columns(entries)

    def order(place: int) -> tuple[float, int, int]:
        return -entries[place][2], entries[place][1], place

    expected = [place for g in range(GROUPS) for place in sorted(members(entries, g), key=order)[:k]]
    assert best_of_rows(group, item, score, k).tolist() == expected


@checked
@given(ENTRIES)
def test_first_of_each_key(entries: Entries) -> None:
    group, item, _ = columns(entries)
    first: dict[tuple[int, int], int] = {}
    for place, entry in enumerate(entries):
        first.setdefault(entry[:2], place)
    assert first_of_each(group * ITEMS + item).tolist() == [first[key] for key in sorted(first)]
    by_row = sorted(first.values(), key=lambda place: (entries[place][0], place))
    assert distinct_in_rows(group, item, ITEMS).tolist() == by_row


@checked
@given(ENTRIES, st.integers(1, 4))
def test_pairs_are_pooled_and_ranked(entries: Entries, k: int) -> None:
    told: dict[tuple[int, int], list[float]] = {}
    for entry in entries:
        told.setdefault(entry[:2], []).append(entry[2])
    pooled = {key: sum(sorted(values)[-2:]) for key, values in told.items()}
    found = pool_pairs(*columns(entries), ITEMS, "top2")
    assert list(zip(found[0].tolist(), found[1].tolist(), strict=True)) == sorted(pooled)
    assert found[2].tolist() == [pooled[key] for key in sorted(pooled)]
    items, scores = top_pairs(*found, GROUPS, k)
    for g in range(GROUPS):
        own = sorted((i for q, i in pooled if q == g), key=lambda i: (-pooled[g, i], i))[:k]
        assert items[g].tolist() == own + [-1] * (k - len(own))
        assert scores[g].tolist() == [pooled[g, i] for i in own] + [-float("inf")] * (k - len(own))


@checked
@given(st.lists(st.lists(st.integers(0, 9), max_size=4), min_size=1, max_size=6), st.data())
def test_gather_takes_rows_in_the_order_asked_for(rows: list[list[int]], data: st.DataObject) -> None:
    asked = data.draw(st.lists(st.integers(0, len(rows) - 1), max_size=6))
    owner, values = Ragged.from_lists(rows).gather(torch.tensor(asked, dtype=torch.long))
    assert owner.tolist() == [place for place, row in enumerate(asked) for _ in rows[row]]
    assert values.tolist() == [value for row in asked for value in rows[row]]


def test_sets_of_keys() -> None:
    keys = sorted_distinct(torch.tensor([5, 1, 5, 3]))
    assert keys.tolist() == [1, 3, 5]
    assert contains(keys, torch.tensor([0, 3, 5, 6])).tolist() == [False, True, True, False]
    assert contains(keys[:0], torch.tensor([1])).tolist() == [False]


def test_everything_stays_on_its_device(device: torch.device) -> None:
    group, item, score = (t.to(device) for t in columns([(0, 1, 0.5), (1, 0, 2.0), (0, 1, 0.25)]))
    for found in (
        reduce_segments(score, group, 2, "mean"),
        top_per_group(group, score, 1),
        first_of_each(group),
        distinct_in_rows(group, item, ITEMS),
        *top_pairs(*pool_pairs(group, item, score, ITEMS, "sum"), 2, 3),
        *Ragged.from_lists([[1, 2], []], device=device).gather(group),
    ):
        assert found.device.type == device.type
