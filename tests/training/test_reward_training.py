import json
from types import SimpleNamespace

import pytest
import torch
from pytorch_lightning import Trainer
from pytorch_lightning.callbacks import ModelCheckpoint

from qgrag.errors import ConfigError, InputError
from qgrag.models.reward import RewardConfig
from qgrag.training.checks import NonFiniteLossError
from qgrag.training.optimizer import OptimizerConfig
from qgrag.training.reward_batches import TextCollator, VectorCollator
from qgrag.training.reward_data import SubgraphData
from qgrag.training.reward_examples import LabelledSubgraph, RewardExample, read_rewards, write_rewards
from qgrag.training.reward_module import RewardModule, cosine_scores
from qgrag.training.sampling import Draw
from qgrag.training.text_encoder import TextEncoderConfig
from qgrag.training.vector_cache import VectorCache
from tests.training.conftest import DIMENSION, make_rewards, plain_transformer
from tests.training.test_embedding_training import KillAfter, Killed, latest

SHAPE = RewardConfig(dimension=DIMENSION, heads=4, dropout=0.1, scorer="product")


def make_module(model, *, reward=SHAPE, rate=3e-3, **parameters) -> RewardModule:
    torch.manual_seed(0)
    encoder = TextEncoderConfig(str(model), query_tokens=16, passage_tokens=48)
    return RewardModule(reward, encoder, optimizer=OptimizerConfig(learning_rate=rate), **parameters)


def fit(module, files, out, *, callbacks=(), ckpt_path=None, batch_size=16, **trainer):
    data = SubgraphData(
        files["train"],
        files["val"],
        files["test"],
        batch_size=batch_size,
        cache=str(out / "vectors"),
    )
    options = {"accelerator": "cpu", "devices": 1, "logger": False, "enable_progress_bar": False}
    options |= {"enable_checkpointing": bool(callbacks), "enable_model_summary": False, "num_sanity_val_steps": 0}
    run = Trainer(
        default_root_dir=str(out), use_distributed_sampler=False, callbacks=list(callbacks), **(options | trainer)
    )
    run.fit(module, datamodule=data, ckpt_path=ckpt_path, weights_only=True)
    return run


@pytest.mark.parametrize(("loss", "least"), [("regression", 0.45), ("pairwise", 0.85), ("listwise", 0.85)])
def test_it_learns_to_choose_with_each_loss(tmp_path, tiny_model, reward_files, loss, least):
    run = fit(make_module(tiny_model, loss=loss, rate=1e-2), reward_files, tmp_path, max_epochs=12)
    metrics = {name: float(value) for name, value in run.callback_metrics.items()}
    assert metrics["val/top1_chance"] == pytest.approx(1 / 3)
    assert metrics["val/top1"] > least


@pytest.mark.parametrize(("items", "encoding"), [("tokens", "frozen"), ("tokens", "trained"), ("triples", "trained")])
def test_encoder_in_the_loop(tmp_path, tiny_model, reward_files, items, encoding):
    shape = RewardConfig(dimension=DIMENSION, heads=4, items=items)
    module = make_module(tiny_model, reward=shape, encoding=encoding)
    before = {name: p.clone() for name, p in module.encoder.named_parameters()}
    fit(module, reward_files, tmp_path, max_steps=2)
    changed = [name for name, p in module.encoder.named_parameters() if not torch.equal(p, before[name])]
    assert bool(changed) == (encoding == "trained")


def test_cached_and_encoded_batches_are_the_same(tmp_path, tiny_model):
    examples = make_rewards(6)
    module = make_module(tiny_model, encoding="frozen").eval()
    texts = list(dict.fromkeys(t for e in examples for s in e.subgraphs for t in s.triples))
    cache = VectorCache(tmp_path, module.embedder)
    q, triples = cache.encode_queries([e.query for e in examples]), cache.encode(texts)
    looked_up = VectorCollator(examples, q, triples, {t: i for i, t in enumerate(texts)})
    encoder = module.encoder
    tokenized = TextCollator(examples, encoder.tokenize_queries, encoder.tokenize_passages, as_one_text=False)
    draws = [Draw(0, i) for i in (4, 0, 2)]
    score, vectors = module.score(looked_up(draws))
    again, encoded = module.score(tokenized(draws))
    torch.testing.assert_close(score, again, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(cosine_scores(vectors), cosine_scores(encoded), rtol=1e-4, atol=1e-5)
    assert len(score) == 9


def test_vectors_are_made_once(tmp_path, tiny_model):
    embedder = make_module(tiny_model).embedder
    first = VectorCache(tmp_path, embedder).encode(["a river", "a poem"])

    class Broken:
        fingerprint, dimension = embedder.fingerprint, embedder.dimension

        def encode(self, texts):
            assert list(texts) == ["a bridge"]
            return torch.ones(1, DIMENSION)

    second = VectorCache(tmp_path, Broken()).encode(["a poem", "a bridge", "a river"])
    assert torch.equal(second[[2, 0]], first)
    assert torch.equal(second[1], torch.ones(DIMENSION))
    assert [path.suffix for path in tmp_path.iterdir()] == [".safetensors"]


def test_one_process_makes_the_vectors_and_the_others_read_them(tmp_path, tiny_model, reward_files):
    def data():
        found = SubgraphData(**reward_files, cache=str(tmp_path))
        module = make_module(tiny_model)
        found.trainer = SimpleNamespace(lightning_module=module)
        return found, module

    first, _ = data()
    first.prepare_data()
    second, module = data()
    encoded: list[str] = []
    module.embedder.encode = module.embedder.encode_queries = lambda texts: encoded.extend(texts)
    second.setup("fit")
    assert not encoded


def test_killed_and_resumed_equals_unbroken(tmp_path, tiny_model, reward_files):
    whole = make_module(tiny_model)
    fit(whole, reward_files, tmp_path, max_steps=20)
    broken = make_module(tiny_model)
    with pytest.raises(Killed):
        fit(broken, reward_files, tmp_path, max_steps=20, callbacks=[latest(tmp_path), KillAfter(7)])
    resumed = make_module(tiny_model)
    fit(resumed, reward_files, tmp_path, max_steps=20, ckpt_path=tmp_path / "latest.ckpt")
    for name, weight in whole.state_dict().items():
        torch.testing.assert_close(resumed.state_dict()[name], weight, rtol=1e-5, atol=1e-6, msg=name)


def test_wrong_checkpoints_and_widths(tmp_path, tiny_model, reward_files):
    callbacks = [ModelCheckpoint(tmp_path, "latest", every_n_train_steps=2, enable_version_counter=False)]
    fit(make_module(tiny_model), reward_files, tmp_path, max_steps=2, callbacks=callbacks)
    other = make_module(tiny_model, reward=RewardConfig(dimension=DIMENSION, heads=8, scorer="product"))
    with pytest.raises(ConfigError, match=r"another architecture: 4 heads .* describes 8 heads"):
        fit(other, reward_files, tmp_path, ckpt_path=tmp_path / "latest.ckpt")
    (tmp_path / "wide").mkdir()
    with pytest.raises(ConfigError, match=r"dimension is 64, but .* gives vectors of 32"):
        fit(make_module(tiny_model, reward=RewardConfig(dimension=64)), reward_files, tmp_path / "wide")
    assert not any((tmp_path / "wide").rglob("*.safetensors"))
    (tmp_path / "other").mkdir()
    with pytest.raises(ConfigError, match=r"another architecture: .*product, on vectors with fingerprint"):
        fit(
            make_module(plain_transformer(tmp_path / "other", dropout=0.1)),
            reward_files,
            tmp_path,
            ckpt_path=tmp_path / "latest.ckpt",
        )
    with pytest.raises(ConfigError, match=r"dimension is 64, but .* gives vectors of 32"):
        make_module(tiny_model, reward=RewardConfig(dimension=64), encoding="frozen")
    with pytest.raises(ConfigError, match="token states are not cached"):
        make_module(tiny_model, reward=RewardConfig(dimension=DIMENSION, items="tokens"))


def test_non_finite_loss(tmp_path, tiny_model, reward_files):
    module = make_module(tiny_model)
    with torch.no_grad():
        module.model.W_V.weight.fill_(torch.inf)
    with pytest.raises(NonFiniteLossError):
        fit(module, reward_files, tmp_path, max_steps=1)


def test_reward_files_round_trip_and_name_bad_lines(tmp_path):
    examples = make_rewards(3)
    assert write_rewards(tmp_path / "r.jsonl", examples) == 3
    assert read_rewards(tmp_path / "r.jsonl") == examples
    good = examples[0].to_plain()
    for change, message in (
        ({"subgraphs": good["subgraphs"][:1]}, "at least two"),
        ({"subgraphs": [*good["subgraphs"], {"name": "x", "triples": ["t"], "reward": 2}]}, "0 to 1, not 2"),
        ({"subgraphs": [*good["subgraphs"], {"name": "x", "triples": ["t"], "reward": None}]}, "finite number"),
        ({"subgraphs": [*good["subgraphs"], {"name": "x", "triples": [], "reward": 1}]}, '"triples" needs at least 1'),
        ({"query": ""}, '"query"'),
    ):
        (tmp_path / "bad.jsonl").write_text(json.dumps(good) + "\n" + json.dumps({**good, **change}) + "\n")
        with pytest.raises(InputError, match=r"bad\.jsonl, line 2: ") as caught:
            read_rewards(tmp_path / "bad.jsonl")
        assert message in str(caught.value)


def test_questions_without_a_choice_are_left_out_of_training(tmp_path, tiny_model, reward_files):
    same = LabelledSubgraph("one_hop", ("river lies in egypt",), 0.5)
    flat = [RewardExample(f"which river is n{i} ?", (same, same)) for i in range(30)]
    write_rewards(tmp_path / "train.jsonl", [*make_rewards(8), *flat])
    files = {**reward_files, "train": str(tmp_path / "train.jsonl")}
    run = fit(make_module(tiny_model), files, tmp_path, max_epochs=1, batch_size=4)
    assert run.global_step == 2
    write_rewards(tmp_path / "flat.jsonl", flat)
    for name in ("train", "val"):
        with pytest.raises(InputError, match=r"flat\.jsonl: in no question do the subgraphs differ"):
            fit(make_module(tiny_model), {**files, name: str(tmp_path / "flat.jsonl")}, tmp_path, max_epochs=1)
