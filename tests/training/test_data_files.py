import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qgrag.errors import InputError
from qgrag.training.pairs import TrainingPair, read_pairs, write_pairs
from qgrag.training.splits import split_by_group


def test_pairs_survive_a_round_trip(tmp_path):
    pairs = [
        TrainingPair("谁?", ("维也纳\n",), ("x", "y"), ("d1",), ("d2", "d3"), "g"),
        TrainingPair("q", ("a", "b")),
    ]
    assert write_pairs(tmp_path / "p.jsonl", pairs) == 2
    assert read_pairs(tmp_path / "p.jsonl") == pairs


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "line 2, column 2: not JSON"),
        ("[1]", "line 2: expected an object"),
        ('{"query": " ", "pos": ["a"]}', 'line 2: needs "query"'),
        ('{"query": "q", "pos": []}', 'line 2: "pos" needs at least 1'),
        ('{"query": "q", "pos": "a"}', 'line 2: "pos" has to be a list'),
        ('{"query": "q", "pos": ["a"], "neg": [""]}', 'line 2: "neg" has to be a list'),
        ('{"query": "q", "pos": ["a"], "pos_ids": ["x", "y"]}', 'line 2: "pos" has 1 texts but "pos_ids" has 2'),
        ('{"query": "q", "pos": ["a"], "group": 3}', 'line 2: "group"'),
    ],
)
def test_a_bad_line_is_named(tmp_path, line, message):
    path = tmp_path / "p.jsonl"
    path.write_text('{"query": "q", "pos": ["a"]}\n' + line + "\n")
    with pytest.raises(InputError) as caught:
        read_pairs(path)
    assert message in str(caught.value)
    assert str(path) in str(caught.value)


def test_files_that_cannot_be_read(tmp_path):
    with pytest.raises(InputError, match="cannot be read"):
        read_pairs(tmp_path / "none.jsonl")
    (tmp_path / "empty.jsonl").write_text("\n\n")
    with pytest.raises(InputError, match="holds no example"):
        read_pairs(tmp_path / "empty.jsonl")
    (tmp_path / "latin.jsonl").write_bytes(b'{"query": "\xe9"}')
    with pytest.raises(InputError, match="not UTF-8 at byte"):
        read_pairs(tmp_path / "latin.jsonl")


@settings(deadline=None, max_examples=60)
@given(
    st.lists(st.integers(0, 30), min_size=1, max_size=80),
    st.integers(0, 99),
    st.sampled_from([(0.8, 0.2), (0.6, 0.2, 0.2)]),
)
def test_splits_never_tear_a_group(groups, seed, shares):
    items = [(str(group), i) for i, group in enumerate(groups)]
    if len(set(groups)) < len(shares):
        with pytest.raises(InputError, match="tearing"):
            split_by_group(items, lambda item: item[0], shares, seed)
        return
    parts = split_by_group(items, lambda item: item[0], shares, seed)
    assert sorted(item for part in parts for item in part) == sorted(items)
    names = [{name for name, _ in part} for part in parts]
    assert all(names)
    assert sum(map(len, names)) == len(set(groups))
    assert parts == split_by_group(items, lambda item: item[0], shares, seed)
    shuffled = split_by_group(items[::-1], lambda item: item[0], shares, seed)
    assert [set(part) for part in shuffled] == [set(part) for part in parts]


def test_splits_follow_the_seed_and_refuse_bad_shares():
    items = [str(i) for i in range(50)]
    first, second = (split_by_group(items, str, (0.5, 0.5), seed) for seed in (0, 1))
    assert first != second
    assert [len(part) for part in first] == [25, 25]
    with pytest.raises(InputError, match="add up to 1"):
        split_by_group(items, str, (0.5, 0.6), 0)
