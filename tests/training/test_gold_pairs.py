import logging
import re
from itertools import accumulate

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonargparse import Namespace
from rich.console import Console
from torch.profiler import ProfilerActivity, profile

from qgrag.cli.data import run
from qgrag.cli.data_arguments import split_parts
from qgrag.errors import ConfigError, InputError
from qgrag.index.vectors import VectorConfig, VectorIndex
from qgrag.training.gold_pairs import (
    GoldQuestion,
    document_groups,
    pairs_of_index,
    pairs_of_questions,
    with_hard_negatives,
    with_random_negatives,
)
from qgrag.training.mining import MiningConfig, mine_hard_negatives
from qgrag.training.pairs import TrainingPair, read_pairs


@settings(deadline=None, max_examples=30)
@given(st.integers(1, 5), st.integers(2, 25), st.integers(1, 4), st.floats(-0.2, 0.4), st.integers(0, 10**6))
def test_mining_equals_a_plain_loop(queries, size, count, margin, seed):
    g = torch.Generator().manual_seed(seed)
    unit = lambda n: torch.nn.functional.normalize(torch.randn(n, 6, generator=g), dim=1)  # noqa: E731
    q, d = unit(queries), unit(size)
    document = torch.randint(0, max(1, size // 2), (size,), generator=g)
    positives = [torch.randperm(size, generator=g)[: 1 + i % 2].tolist() for i in range(queries)]
    config = MiningConfig(count=count, depth=max(count, 10), margin=margin, block=2)
    mined = mine_hard_negatives(q, VectorIndex.build(d, VectorConfig()), positives, document, config)
    for i in range(queries):
        scores = d @ q[i]
        best = scores[positives[i]].max()
        own = {int(document[row]) for row in positives[i]}
        ranked = scores.argsort(descending=True).tolist()[: config.depth]
        safe = [row for row in ranked if int(document[row]) not in own and scores[row] <= best - margin]
        assert mined[i] == safe[:count]


def test_mining_states_its_memory_first_and_keeps_to_it(caplog):
    d = torch.nn.functional.normalize(torch.randn(300, 384, generator=torch.Generator().manual_seed(0)), dim=1)
    passages = VectorIndex.build(d, VectorConfig())
    positives = [list(range(50)), *([i] for i in range(1, 128))]
    with caplog.at_level(logging.WARNING), profile(activities=[ProfilerActivity.CPU], profile_memory=True) as run:
        mine_hard_negatives(d[:128], passages, positives, torch.arange(300), MiningConfig(block=64))
    (stated,) = re.findall(r"128 queries among 300 passages, 64 queries at a time: (\S+) MiB at most", caplog.text)
    changes = [event.nbytes() for event in run.profiler.kineto_results.events() if event.name() == "[memory]"]
    assert changes
    assert max(accumulate(changes)) < float(stated) * 2**20 < 1.5 * 2**20
    whole = VectorIndex(d, None)
    assert MiningConfig().peak_bytes(1, whole) > MiningConfig().block * 300 * 4
    with pytest.raises(ConfigError, match="depth at least count"):
        MiningConfig(count=5, depth=4)


def test_an_index_teaches_itself(demo_index):
    groups = document_groups(demo_index, "document")
    pairs = pairs_of_index(demo_index, groups)
    passages = {chunk.passage: chunk.document_id for chunk in demo_index.chunks}
    assert len(pairs) > 50
    assert len({(pair.query, pair.pos) for pair in pairs}) == len(pairs)
    assert all(passages[pair.pos[0]] == pair.pos_ids[0] == pair.group for pair in pairs)
    mined = with_hard_negatives(pairs, demo_index, MiningConfig(count=3, margin=0.0))
    assert any(pair.neg for pair in mined)
    assert all(not set(pair.neg_ids) & set(pair.pos_ids) and len(pair.neg) <= 3 for pair in mined)
    drawn = with_random_negatives(pairs, demo_index, 2, seed=1)
    assert drawn == with_random_negatives(pairs, demo_index, 2, seed=1)
    assert drawn != with_random_negatives(pairs, demo_index, 2, seed=2)
    assert all(pair.neg and not set(pair.neg_ids) & set(pair.pos_ids) for pair in drawn)


def test_gold_questions_that_share_a_document_share_a_group(demo_index):
    ids = [document.id for document in demo_index.documents.unique[:4]]
    groups = document_groups(demo_index, "document")
    questions = [GoldQuestion("a", (ids[0], ids[1])), GoldQuestion("b", (ids[1], ids[2])), GoldQuestion("c", (ids[3],))]
    first, second, third = pairs_of_questions(questions, demo_index, groups)
    assert first.group == second.group != third.group
    assert first.pos_ids == (ids[0], ids[1])
    with pytest.raises(InputError, match="document 'nowhere', which the index lacks"):
        pairs_of_questions([GoldQuestion("d", ("nowhere",))], demo_index, {"nowhere": "x"})


@pytest.mark.parametrize("negatives", ["hard", "random"])
def test_command_writes_splits_that_share_no_document(tmp_path, demo_folder, capsys, negatives):
    arguments = ["pairs", str(demo_folder), "--out", str(tmp_path), "--negatives", negatives, "--mining.count", "2"]
    assert run(arguments) == 0
    parts = {name: read_pairs(tmp_path / f"{name}.jsonl") for name in ("train", "val", "test")}
    asked = [{name for pair in pairs for name in pair.pos_ids} for pairs in parts.values()]
    read = [{name for pair in pairs for name in pair.neg_ids} for pairs in parts.values()]
    queries = [{pair.query for pair in pairs} for pairs in parts.values()]
    assert all(read)
    for i, j in ((0, 1), (0, 2), (1, 2)):
        assert not asked[i] & asked[j]
        assert not read[i] & asked[j]
        assert not read[j] & asked[i]
        assert not queries[i] & queries[j]
    assert "examples of" in capsys.readouterr().out
    assert run([*arguments, "--split", "[0.8, 0.2]"]) == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["train.jsonl", "val.jsonl"]
    with pytest.raises(InputError, match="did you mean 'pairs'"):
        run(["pair"])


def test_a_question_asked_of_two_parts_stays_in_the_first(capsys):
    pairs = [TrainingPair("who is it?", (f"p{i}",), (), (f"d{i}",), (), f"d{i}") for i in range(6)]
    pairs += [TrainingPair(f"what is d{i}?", (f"p{i}",), (), (f"d{i}",), (), f"d{i}") for i in range(6)]
    parts = split_parts(Console(), Namespace(split=[0.5, 0.5], seed=0), pairs)
    assert [len(part) for part in parts] == [6, 3]
    assert "who is it?" not in {pair.query for pair in parts[1]}
    assert "3 examples left out" in capsys.readouterr().out
