"""Pools with gold, their files, the loss and recall, and a run that learns and is taken by `auto`."""

import math
from pathlib import Path

import pytest
import torch

from qgrag.cli.main import main
from qgrag.errors import InputError
from qgrag.index.reader import Index
from qgrag.models.evidence_checkpoint import read_evidence_model
from qgrag.training.evidence_data import _TrainCollator, without_members
from qgrag.training.evidence_module import evidence_loss, pool_recall
from qgrag.training.evidence_pools import EvidencePools, draw_pools, join_pools, load_pools, save_pools
from qgrag.training.gold_pairs import GoldQuestion
from qgrag.training.sampling import Draw

MEMBERS = ("bm25", "naive", "ppr")
QUESTIONS = [
    GoldQuestion("At which college did Graham Greene study?", ("graham-greene.md",)),
    GoldQuestion("Who composed the music of The Third Man?", ("the-third-man.md",)),
    GoldQuestion("At which college did the author of The Third Man study?", ("the-third-man.md", "graham-greene.md")),
]


@pytest.fixture(scope="module")
def pools(demo_index: Index) -> EvidencePools:
    return draw_pools(demo_index, QUESTIONS, members=MEMBERS, depth=8, size=12, text=True)


def test_pools_know_their_gold(pools: EvidencePools) -> None:
    assert pools.wanted.tolist() == [1, 1, 2]
    assert pools.ceiling == 1.0
    assert sorted(set(pools.gold[2].tolist())) == [0, 1, 2]
    assert not pools.gold.masked_select(~pools.mask).any()


def test_pools_come_back_from_their_file(pools: EvidencePools, tmp_path: Path) -> None:
    save_pools(tmp_path / "ev" / "train.safetensors", pools)
    read = load_pools(tmp_path / "ev" / "train.safetensors")
    assert (read.members, read.features, read.depth, read.size) == (MEMBERS, pools.features, 8, 12)
    assert all(torch.equal(value, getattr(pools, name)) for name, value in read.tensors())
    (tmp_path / "broken").write_bytes(b"\x00" * 50)
    with pytest.raises(InputError, match="damaged"):
        load_pools(tmp_path / "broken")
    with pytest.raises(InputError, match="no such file"):
        load_pools(tmp_path / "none")


def test_gold_that_the_index_lacks_is_named(demo_index: Index) -> None:
    with pytest.raises(InputError, match=r"no document 'gone\.md'"):
        draw_pools(demo_index, [GoldQuestion("Who?", ("gone.md",))], members=MEMBERS)


def test_joined_pools_are_cut_to_what_is_filled(pools: EvidencePools) -> None:
    both = join_pools([pools.take([0]), pools.take([2, 1])])
    assert len(both) == 3
    assert both.mask.sum(1).max() == both.mask.shape[1]
    torch.testing.assert_close(both.gold[1][both.mask[1]], pools.gold[2][pools.mask[2]])


def test_a_draw_depends_on_epoch_and_number_alone(pools: EvidencePools) -> None:
    collate = _TrainCollator([pools, pools.take([0])], 4, seed=3, member_dropout=0.3)
    draws = [Draw(1, 0), Draw(1, 3), Draw(1, 6)]
    one, two = collate(draws), collate(draws)
    assert torch.equal(one.inputs.candidate, two.inputs.candidate)
    assert sorted(collate._row(0, drawn) for drawn in range(3)) == [0, 1, 2]
    assert sorted(collate._row(0, drawn) for drawn in range(3, 6)) == [0, 1, 2]
    assert [collate._row(1, drawn) for drawn in range(3)] == [0, 0, 0]


def test_members_left_out_lose_their_own_features_alone(pools: EvidencePools) -> None:
    given = pools.inputs()
    changed = without_members(given, pools, 0.999999, torch.Generator().manual_seed(0))
    own = 4 * len(MEMBERS)
    assert not changed.candidate[..., :own].any()
    assert torch.equal(changed.candidate[..., own:], given.candidate[..., own:])
    assert not changed.question[:, :own].any()


def test_loss_and_recall_by_hand() -> None:
    logits = torch.tensor([[0.0, 1.0, -torch.inf], [2.0, 0.0, 1.0]])
    gold = torch.tensor([[0, 1, 0], [0, 0, 0]], dtype=torch.int16)
    mask = torch.tensor([[True, True, False], [True, True, True]])
    listwise = -math.log(math.e / (1 + math.e))
    soft = [math.log(1 + math.exp(x)) for x in (0, -1, 2, 0, 1)]
    assert evidence_loss(logits, gold > 0, mask, 0.5).item() == pytest.approx(listwise + 0.5 * sum(soft) / 2, rel=1e-5)
    two = torch.tensor([[1, 2, 1], [0, 0, 3]], dtype=torch.int16)
    assert pool_recall(logits, two, torch.tensor([2, 3]), k=2).tolist() == pytest.approx([1.0, 1 / 3])


def test_a_run_learns_its_pools_and_is_taken_by_auto(
    pools: EvidencePools, demo_folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "train.safetensors"
    save_pools(file, pools)
    run = ["train", "evidence", "fit", "--config", str(Path(__file__).parents[2] / "configs/train/evidence.yaml")]
    run += ["--data.train", f"[{file}]", "--data.per_corpus", "16", "--data.batch_size", "8"]
    run += ["--trainer.max_epochs", "30", "--model.optimizer.learning_rate", "0.005", "--trainer.accelerator", "cpu"]
    run += ["--trainer.enable_progress_bar", "false"]
    assert main([*run, "--model.text", "attention", "--out", str(tmp_path / "run")]) == 0
    checkpoint = read_evidence_model(tmp_path / "run" / "model")
    logits = checkpoint.model(pools.inputs())
    assert pool_recall(logits, pools.gold, pools.wanted, k=2).mean() == 1.0
    config = tmp_path / "auto.yaml"
    config.write_text(f"retriever: auto\nmodel: {tmp_path / 'run' / 'model'}\n")
    capsys.readouterr()
    assert main(["retrieve", str(demo_folder), "--retriever", str(config), "--top-k", "2", QUESTIONS[2].text]) == 0
    shown = capsys.readouterr().out
    assert "graham-greene.md" in shown
    assert "the-third-man.md" in shown
