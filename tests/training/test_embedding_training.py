import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from pytorch_lightning import Callback
from pytorch_lightning.callbacks import ModelCheckpoint
from safetensors.torch import load_file

from qgrag.errors import ConfigError, InputError
from qgrag.training.checks import NonFiniteLossError
from qgrag.training.pair_batches import PairCollator, PairDataset
from qgrag.training.pairs import read_pairs
from qgrag.training.sampling import Draw
from qgrag.training.text_encoder import LoRA, TextEncoder, TextEncoderConfig
from tests.training.fitting import fit, make_module, vectors

SCRIPT = Path(__file__).with_name("fitting.py")


class Killed(RuntimeError):
    pass


class KillAfter(Callback):
    def __init__(self, step: int) -> None:
        self.step = step

    def on_train_batch_end(self, trainer, *args) -> None:
        if trainer.global_step == self.step:
            raise Killed


def latest(folder: Path) -> ModelCheckpoint:
    return ModelCheckpoint(folder, "latest", every_n_train_steps=3, enable_version_counter=False)


@pytest.fixture(scope="module")
def dropout_model(tmp_path_factory) -> Path:
    from tests.training.conftest import plain_transformer

    return plain_transformer(tmp_path_factory.mktemp("dropout"), dropout=0.2)


@pytest.mark.parametrize("killed_after", [4, 5])
def test_a_run_killed_in_mid_epoch_ends_where_an_unbroken_one_does(tmp_path, dropout_model, pair_files, killed_after):
    whole = make_module(dropout_model)
    fit(whole, pair_files["train"], tmp_path, max_steps=8)
    broken = make_module(dropout_model)
    callbacks = [latest(tmp_path), KillAfter(killed_after)]
    with pytest.raises(Killed):
        fit(broken, pair_files["train"], tmp_path, max_steps=8, callbacks=callbacks)
    resumed = make_module(dropout_model)
    run = fit(resumed, pair_files["train"], tmp_path, max_steps=8, ckpt_path=tmp_path / "latest.ckpt")
    assert run.global_step == 8
    for name, weight in whole.state_dict().items():
        torch.testing.assert_close(resumed.state_dict()[name], weight, rtol=1e-5, atol=1e-6, msg=name)
    assert not torch.equal(vectors(resumed), vectors(make_module(dropout_model)))


def test_two_processes_train_what_one_with_the_whole_batch_does(tmp_path, tiny_model, pair_files):
    environment = os.environ | {"HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, str(SCRIPT), str(tiny_model), pair_files["train"], str(tmp_path)],
        capture_output=True,
        text=True,
        env=environment,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    alone = make_module(tiny_model)
    fit(alone, pair_files["train"], tmp_path, batch_size=8, max_steps=3)
    together = load_file(tmp_path / "vectors.safetensors")["vectors"]
    torch.testing.assert_close(together, vectors(alone), rtol=1e-3, atol=1e-4)
    assert (together - vectors(make_module(tiny_model))).abs().max() > 1e-2


def test_gradient_caching_changes_memory_and_nothing_else(tiny_model, pair_files):
    saved, gradients = [], []
    for mini_batch in (0, 3):
        module = make_module(tiny_model, mini_batch=mini_batch)
        held: list[int] = []
        with torch.autograd.graph.saved_tensors_hooks(lambda t, held=held: held.append(t.numel()) or t, lambda t: t):
            loss = module.contrast(_batch(module, pair_files["train"], 16)).loss
        loss.backward()
        saved.append(sum(held))
        gradients.append({n: p.grad for n, p in module.named_parameters() if p.grad is not None})
    assert gradients[0].keys() == gradients[1].keys()
    assert gradients[0]
    for name, gradient in gradients[0].items():
        torch.testing.assert_close(gradients[1][name], gradient, rtol=1e-4, atol=1e-6, msg=name)
    assert saved[1] < saved[0] / 10


def test_gradient_caching_repeats_its_dropout(dropout_model, pair_files):
    module = make_module(dropout_model, mini_batch=4)
    batch = _batch(module, pair_files["train"], 8)
    torch.manual_seed(3)
    module.contrast(batch).loss.backward()
    parameter = module.encoder.transformer.embeddings.word_embeddings.weight
    analytic, eps = parameter.grad.clone(), 1e-3
    row, column = divmod(int(analytic.abs().argmax()), analytic.shape[1])
    losses = []
    for sign in (1, -1):
        with torch.no_grad():
            parameter[row, column] += sign * eps
        torch.manual_seed(3)
        losses.append(float(module.contrast(batch).loss.detach()))
        with torch.no_grad():
            parameter[row, column] -= sign * eps
    assert (losses[0] - losses[1]) / (2 * eps) == pytest.approx(float(analytic[row, column]), rel=0.05)


def test_training_learns_and_validates(tmp_path, tiny_model, pair_files):
    module = make_module(tiny_model)
    run = fit(module, pair_files["train"], tmp_path, val=pair_files["val"], max_steps=-1, max_epochs=6)
    after = {name: float(value) for name, value in run.callback_metrics.items()}
    assert after["train/loss"] < 1.5
    assert after["train/negatives"] == pytest.approx(7 + 8 * 0.8, abs=1.2)
    assert {f"val/{m}@{k}" for m in ("mrr", "recall", "ndcg") for k in (1, 10)} <= after.keys()
    assert after["val/recall@10"] > 0.5


def test_lora_trains_adapters_alone_and_merges_into_a_plain_model(tmp_path, tiny_model, pair_files):
    module = make_module(tiny_model, lora=LoRA(rank=4))
    trained = {name for name, p in module.named_parameters() if p.requires_grad}
    assert trained
    assert all("lora_" in name and "pooler" not in name for name in trained)
    fit(module, pair_files["train"], tmp_path, max_steps=3)
    merged = module.encoder.merged()
    assert not any("lora_" in name for name, _ in merged.named_parameters())
    from tests.training.fitting import TEXTS

    torch.testing.assert_close(merged.encode(TEXTS, convert_to_tensor=True), vectors(module), rtol=1e-4, atol=1e-5)
    assert "lora_A" in " ".join(name for name, _ in module.named_parameters())


def test_unknown_layers_for_lora(tiny_model):
    with pytest.raises(ConfigError, match=r"lora.target_modules.*nothing_like_it"):
        TextEncoder(
            TextEncoderConfig(str(tiny_model), passage_tokens=32, lora=LoRA(target_modules=["nothing_like_it"]))
        )


def test_checkpoint_of_another_architecture(tmp_path, tiny_model, pair_files):
    from tests.training.conftest import plain_transformer

    fit(make_module(tiny_model), pair_files["train"], tmp_path, max_steps=3, callbacks=[latest(tmp_path)])
    (tmp_path / "wide").mkdir()
    other = make_module(plain_transformer(tmp_path / "wide", hidden=16))
    with pytest.raises(ConfigError, match=r"another architecture: bert of 32 .* describes bert of 16"):
        fit(other, pair_files["train"], tmp_path, ckpt_path=tmp_path / "latest.ckpt")
    with pytest.raises(ConfigError, match="LoRA of rank 2"):
        fit(
            make_module(tiny_model, lora=LoRA(rank=2)),
            pair_files["train"],
            tmp_path,
            ckpt_path=tmp_path / "latest.ckpt",
        )


def test_non_finite_loss_stops_the_run(tmp_path, tiny_model, pair_files):
    module = make_module(tiny_model)
    with torch.no_grad():
        module.encoder.transformer.embeddings.word_embeddings.weight.fill_(torch.nan)
    with pytest.raises(NonFiniteLossError, match=r"nan at step 0; lower optimizer\.learning_rate"):
        fit(module, pair_files["train"], tmp_path)


def test_empty_batches_and_too_few_examples(tmp_path, tiny_model, pair_files):
    module = make_module(tiny_model)
    batch = _batch(module, pair_files["train"], 2)
    with pytest.raises(InputError, match="holds no query"):
        module.contrast(batch._replace(positive=batch.positive[:0]))
    with pytest.raises(InputError, match="40 training examples do not fill one batch of 64"):
        fit(module, pair_files["train"], tmp_path, batch_size=64)


def _batch(module, path: str, size: int):
    dataset = PairDataset(read_pairs(path), 1, 0)
    collate = PairCollator(module.encoder.tokenize_queries, module.encoder.tokenize_passages)
    return collate([dataset[Draw(0, i)] for i in range(size)])
