import json

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file

from qgrag.errors import ConfigError, InputError, ModelNotFoundError
from qgrag.models.reward import RewardConfig, RewardModel, pad_ragged
from qgrag.models.reward_checkpoint import Encoder, default_checkpoint

D = 64


def model(**parameters) -> RewardModel:
    torch.manual_seed(0)
    return RewardModel(RewardConfig(dimension=D, **parameters), Encoder("tiny", "f00d")).eval()


def reference(m: RewardModel, q, items):
    """One subgraph, head by head, with no batch and no padding."""
    h, width = m.config.heads, m.config.attention_width
    k = width // h
    Q, K, V = q @ m.W_Q.weight.T, items @ m.W_K.weight.T, items @ m.W_V.weight.T
    heads, found = [], []
    for i in range(h):
        part = slice(i * k, (i + 1) * k)
        logits = K[:, part] @ Q[part] / k**0.5
        heads.append(torch.softmax(logits, dim=0) @ V[:, part])
        found.append(torch.logsumexp(logits, dim=0))
    attended = torch.cat(heads) @ m.W_O.weight.T
    if m.config.scorer == "product":
        attended = torch.cat([attended, attended * Q, torch.stack(found)])
    return (attended @ m.score.weight.T + m.score.bias)[0]


@pytest.mark.parametrize("scorer", ["linear", "product"])
@pytest.mark.parametrize("heads", [1, 4, 16, 64])
def test_equals_a_plain_implementation(heads, scorer):
    m = model(heads=heads, scorer=scorer)
    sizes = [3, 1, 7]
    q, values = torch.randn(3, D) / D**0.5, torch.randn(sum(sizes), D) / D**0.5
    ptr = torch.tensor([0, 3, 4, 11])
    expected = torch.stack([reference(m, q[b], values[ptr[b] : ptr[b + 1]]) for b in range(3)])
    torch.testing.assert_close(m.score_subgraphs(q, values, ptr), expected.detach(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("heads", [1, 8])
def test_an_untrained_model_scores_by_a_smooth_maximum_of_cosines(heads):
    m = model(heads=heads, scorer="product")
    q, near, far = torch.eye(3, D)
    q = (q + near) / 2**0.5
    one, two, none = torch.stack([near, far]), torch.stack([near, near, far]), torch.stack([far, -far])
    scores = m.score_subgraphs(q.expand(3, -1), torch.cat([one, two, none]), torch.tensor([0, 2, 5, 7]))
    assert scores[1] > scores[0] > scores[2]
    if heads == 1:
        assert float(scores[0]) == pytest.approx(0.5**0.5, abs=0.05)


@settings(deadline=None, max_examples=40)
@given(
    st.lists(st.integers(1, 6), min_size=1, max_size=5), st.integers(0, 9), st.sampled_from([0.0, 1e4, float("nan")])
)
def test_padding_never_changes_a_score(sizes, extra, rubbish):
    m = model(heads=4, scorer="product")
    torch.manual_seed(len(sizes))
    q = torch.randn(len(sizes), D)
    ptr = torch.tensor([0, *sizes]).cumsum(0)
    items, mask = pad_ragged(torch.randn(sum(sizes), D), ptr)
    wide = torch.cat([items, torch.zeros(len(sizes), extra, D)], dim=1)
    wide_mask = torch.cat([mask, torch.zeros(len(sizes), extra, dtype=torch.bool)], dim=1)
    wide[~wide_mask] = rubbish
    torch.testing.assert_close(m(q, wide, wide_mask), m(q, items, mask), rtol=1e-5, atol=1e-6)


def test_order_of_triples_does_not_matter_and_batches_do_not_either():
    m = model()
    q, values = torch.randn(4, D), torch.randn(20, D)
    ptr = torch.tensor([0, 5, 5, 12, 20])
    scores = m.score_subgraphs(q, values, ptr)
    assert scores[1] == -torch.inf
    assert scores[[0, 2, 3]].isfinite().all()
    shuffled = values.clone()
    shuffled[12:] = values[12:][torch.randperm(8)]
    torch.testing.assert_close(m.score_subgraphs(q, shuffled, ptr, batch_size=1), scores)


def test_attention_weights_add_up_to_one_and_vanish_on_padding():
    m = model(heads=4)
    items, mask = pad_ragged(torch.randn(5, D), torch.tensor([0, 2, 5, 5]))
    weights = m.attention(torch.randn(3, D), items, mask)
    torch.testing.assert_close(weights.sum(-1)[:2], torch.ones(2, 4))
    assert (weights.transpose(1, 2)[~mask] == 0).all()


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_mixed_precision_does_not_round_a_choice_away(dtype):
    m = model(heads=4, scorer="product")
    q, values = torch.nn.functional.normalize(torch.randn(2, 30, D), dim=2)
    items, mask = pad_ragged(values, torch.arange(0, 31, 3))
    expected = m(q[:10], items, mask)
    assert len(expected.unique()) == 10
    with torch.autocast("cpu", dtype=dtype):
        assert torch.equal(m(q[:10], items, mask), expected)
        rounded = m(q[:10].to(dtype), items.to(dtype), mask)
    assert rounded.dtype == torch.float32
    torch.testing.assert_close(m.score_subgraphs(q[:10].to(dtype), values.to(dtype), torch.arange(0, 31, 3)), rounded)


def test_scoring_leaves_training_mode_and_ignores_dropout():
    m = model(dropout=0.5)
    m.train()
    q, values, ptr = torch.randn(2, D), torch.randn(6, D), torch.tensor([0, 2, 6])
    torch.testing.assert_close(m.score_subgraphs(q, values, ptr), m.score_subgraphs(q, values, ptr))
    assert m.training


def test_saved_and_loaded_scores_are_equal(tmp_path):
    m = model(heads=2, scorer="product")
    m.save(tmp_path / "m")
    loaded = RewardModel.from_folder(tmp_path / "m", dimension=D)
    assert loaded.encoder == Encoder("tiny", "f00d")
    q, values, ptr = torch.randn(2, D), torch.randn(6, D), torch.tensor([0, 2, 6])
    assert torch.equal(loaded.score_subgraphs(q, values, ptr), m.score_subgraphs(q, values, ptr))
    assert sorted(p.name for p in (tmp_path / "m").iterdir()) == ["model.safetensors", "reward.json"]


def test_errors_of_checkpoints_say_what_is_wrong(tmp_path):
    with pytest.raises(ModelNotFoundError, match="no reward"):
        RewardModel.from_folder(tmp_path)
    model().save(tmp_path)
    with pytest.raises(ConfigError, match=r"64 dimensions.*gives 384"):
        RewardModel.from_folder(tmp_path, dimension=384)
    weights = load_file(tmp_path / "model.safetensors")
    save_file({**weights, "W_Q.weight": torch.zeros(8, 8)}, tmp_path / "model.safetensors")
    with pytest.raises(ConfigError, match=r"another architecture: 'W_Q.weight' is \(8, 8\)"):
        RewardModel.from_folder(tmp_path)
    weights.pop("W_O.weight")
    save_file(weights, tmp_path / "model.safetensors")
    with pytest.raises(ConfigError, match=r"lacks 'W_O.weight'"):
        RewardModel.from_folder(tmp_path)
    (tmp_path / "model.safetensors").write_bytes(b"\x00" * 20)
    with pytest.raises(ConfigError, match="cannot be read"):
        RewardModel.from_folder(tmp_path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": "other"}, "not a reward model"),
        ({"version": 99}, "upgrade"),
        ({"encoder": None}, "damaged"),
        ({"config": {"head": 2}}, "did you mean 'heads'"),
    ],
)
def test_damaged_description(tmp_path, change, message):
    model().save(tmp_path)
    path = tmp_path / "reward.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    with pytest.raises(ConfigError, match=message):
        RewardModel.from_folder(tmp_path)


def test_wrong_vectors_and_values():
    m = model()
    with pytest.raises(InputError, match="64 dimensions, but got queries of 32"):
        m.score_subgraphs(torch.randn(1, 32), torch.randn(2, 32), torch.tensor([0, 2]))
    with pytest.raises(InputError, match="need a ptr of 2"):
        m.score_subgraphs(torch.randn(1, D), torch.randn(2, D), torch.tensor([0, 1, 2]))
    for bad in ({"heads": 0}, {"heads": 65}, {"heads": 5}, {"dropout": 1.0}, {"dimension": 0}):
        with pytest.raises(ConfigError):
            RewardConfig(**{"dimension": D, **bad})


def test_the_package_carries_a_model():
    folder = default_checkpoint()
    m = RewardModel.from_folder(folder, dimension=384)
    assert m.encoder.name == "sentence-transformers/all-MiniLM-L6-v2"
    assert sum(path.stat().st_size for path in folder.iterdir()) < 10e6
    assert "## Command" in (folder / "README.md").read_text()
    q = torch.nn.functional.normalize(torch.randn(1, 384), dim=1)
    near = torch.nn.functional.normalize(q + 0.3 * torch.randn(3, 384) / 384**0.5, dim=1)
    far = torch.nn.functional.normalize(torch.randn(3, 384), dim=1)
    scores = m.score_subgraphs(q.expand(2, -1), torch.cat([far, near]), torch.tensor([0, 3, 6]))
    assert scores[1] > scores[0]
