import json
from pathlib import Path

import pytest
import torch
import yaml
from sentence_transformers import SentenceTransformer

from qgrag.cli.train import run
from qgrag.corpus.records import Document
from qgrag.errors import ConfigError, IndexFormatError, InputError
from qgrag.index.builder import build_index
from qgrag.index.config import IndexConfig
from qgrag.index.reader import Index
from qgrag.models.embedder import EmbedderConfig, LocalEmbedder
from qgrag.models.reward import RewardModel
from qgrag.training.command_line import load_best
from tests.training.conftest import DIMENSION
from tests.training.fitting import TEXTS

CONFIGS = Path(__file__).resolve().parents[2] / "configs" / "train"
SMALL = ["--trainer.accelerator", "cpu", "--trainer.max_epochs", "2", "--trainer.enable_progress_bar", "false"]


def embedding_arguments(model, files, out) -> list[str]:
    lengths = ["--model.encoder.query_tokens", "16", "--model.encoder.passage_tokens", "24"]
    data = ["--data.train", files["train"], "--data.val", files["val"], "--data.test", files["test"]]
    config = ["--config", str(CONFIGS / "embedding-full.yaml"), "--model.encoder.model", str(model)]
    return [*config, *lengths, *data, "--data.batch_size", "8", "--out", str(out), *SMALL]


@pytest.fixture(scope="module")
def fitted(tmp_path_factory, tiny_model, pair_files) -> Path:
    out = tmp_path_factory.mktemp("fitted") / "run"
    more = ["--model.optimizer.learning_rate", "1e-3", "--latest.every_n_train_steps", "3"]
    more += ["--model.encoder.query_prompt", "which ", "--trainer.log_every_n_steps", "1"]
    run(["embedding", "fit", *embedding_arguments(tiny_model, pair_files, out), *more])
    return out


def test_fit_leaves_checkpoints_logs_configuration_and_a_model(fitted):
    names = {path.relative_to(fitted).as_posix() for path in fitted.rglob("*") if path.is_file()}
    assert {"checkpoints/latest.ckpt", "model/README.md", "model/modules.json", "model/model.safetensors"} <= names
    assert any(name.startswith("checkpoints/best-") for name in names)
    assert (fitted / "curves.png").read_bytes().startswith(b"\x89PNG")
    logs = fitted / "logs" / "version_0"
    header = (logs / "metrics.csv").read_text().splitlines()[0]
    assert "train/loss" in header
    assert "val/ndcg@10" in header
    assert any(path.name.startswith("events.out") for path in logs.iterdir())
    assert yaml.safe_load((logs / "config.yaml").read_text())["model"]["temperature"] == 0.05


def test_plain_sentence_transformers_loads_the_model(fitted):
    plain = SentenceTransformer(str(fitted / "model"), device="cpu")
    embedder = LocalEmbedder(EmbedderConfig(str(fitted / "model"), query_prompt="which "))
    passages = plain.encode(TEXTS, convert_to_tensor=True)
    torch.testing.assert_close(passages.norm(dim=1), torch.ones(len(TEXTS)))
    torch.testing.assert_close(embedder.encode(TEXTS), passages, rtol=1e-4, atol=1e-5)
    queries = plain.encode(TEXTS, prompt_name="query", convert_to_tensor=True)
    torch.testing.assert_close(embedder.encode_queries(TEXTS), queries, rtol=1e-4, atol=1e-5)
    assert plain.max_seq_length == 24
    card = (fitted / "model" / "README.md").read_text()
    assert embedder.fingerprint in card
    assert "qgrag train embedding fit --config" in card
    assert "| val/mrr@10 | " in card


def test_an_index_made_with_the_model_refuses_another(fitted, tiny_model, tmp_path):
    config = IndexConfig(embedder=EmbedderConfig(str(fitted / "model")), query_graph=None, knowledge_graph=None)
    build_index([Document("d", "the river of austria is n3 .")], tmp_path / "index", config)
    assert Index.open(tmp_path / "index").manifest.embedder["dimension"] == DIMENSION
    with pytest.raises(IndexFormatError, match="fingerprint"):
        Index.open(tmp_path / "index", embedder=LocalEmbedder(EmbedderConfig(str(tiny_model))))


def test_validate_test_and_resume(fitted, tiny_model, pair_files, tmp_path, capsys):
    arguments = embedding_arguments(tiny_model, pair_files, tmp_path / "again")
    run(["embedding", "validate", *arguments])
    run(["embedding", "test", *arguments, "--ckpt_path", str(fitted / "checkpoints" / "latest.ckpt")])
    said = capsys.readouterr().out
    assert "val/mrr@10" in said
    assert "test/recall@10" in said
    more = ["--ckpt_path", str(fitted / "checkpoints" / "latest.ckpt"), "--trainer.max_epochs", "3"]
    run(["embedding", "fit", *arguments, *more])
    assert (tmp_path / "again" / "model" / "modules.json").is_file()


def test_without_validation_the_last_weights_are_exported(tmp_path, tiny_model, pair_files):
    arguments = embedding_arguments(tiny_model, pair_files, tmp_path / "run")
    run(["embedding", "fit", *arguments, "--data.val", "null", "--trainer.logger", "false"])
    assert sorted(path.name for path in (tmp_path / "run").iterdir()) == ["config.yaml", "model"]


def test_a_finished_run_is_not_written_over(fitted, tiny_model, pair_files):
    with pytest.raises(InputError, match="choose another --out"):
        run(["embedding", "fit", *embedding_arguments(tiny_model, pair_files, fitted)])


def test_checkpoints_hold_no_pickled_objects(fitted):
    checkpoint = torch.load(fitted / "checkpoints" / "latest.ckpt", weights_only=True)
    assert checkpoint["qgrag"]["kind"] == "embedding"
    with pytest.raises(RuntimeError):
        load_best(torch.nn.Linear(1, 1), fitted / "checkpoints" / "latest.ckpt")


def test_checkpoints_that_cannot_be_read_are_named(fitted, tiny_model, pair_files, tmp_path):
    arguments = embedding_arguments(tiny_model, pair_files, tmp_path / "run")
    with pytest.raises(InputError, match=r"none\.ckpt: no such checkpoint"):
        run(["embedding", "fit", *arguments, "--ckpt_path", str(tmp_path / "none.ckpt")])
    whole = (fitted / "checkpoints" / "latest.ckpt").read_bytes()
    torch.save({"state_dict": {}, "code": Path("x")}, tmp_path / "objects.ckpt")
    contents = {"text": b"hello", "empty": b"", "torn": whole[: len(whole) // 2]}
    for name, content in contents.items():
        (tmp_path / f"{name}.ckpt").write_bytes(content)
    for name in [*contents, "objects"]:
        with pytest.raises(InputError, match=rf"{name}\.ckpt: not a training checkpoint"):
            run(["embedding", "test", *arguments, "--ckpt_path", str(tmp_path / f"{name}.ckpt")])


def test_a_trial_of_one_batch_leaves_no_result(tiny_model, pair_files, tmp_path):
    arguments = embedding_arguments(tiny_model, pair_files, tmp_path / "run")
    run(["embedding", "fit", *arguments, "--data.eval_batch_size", "4", "--trainer.fast_dev_run", "true"])
    assert not (tmp_path / "run" / "model").exists()


def test_what_lightning_refuses_is_an_error_of_the_command(tiny_model, pair_files, tmp_path):
    arguments = embedding_arguments(tiny_model, pair_files, tmp_path / "run")
    with pytest.raises(ConfigError, match="fast_dev_run=-1 is not a valid"):
        run(["embedding", "fit", *arguments, "--trainer.fast_dev_run", "-1"])


def test_reward_fit_exports_what_the_retriever_loads(tmp_path, tiny_model, reward_files, fitted):
    arguments = ["--config", str(CONFIGS / "reward-triples.yaml"), "--model.encoder.model", str(tiny_model)]
    arguments += [
        "--data.train",
        reward_files["train"],
        "--data.val",
        reward_files["val"],
        "--out",
        str(tmp_path / "r"),
    ]
    arguments += ["--data.cache", str(tmp_path / "vectors"), "--model.reward.dimension", str(DIMENSION), *SMALL]
    run(["reward", "fit", *arguments])
    model = RewardModel.from_folder(tmp_path / "r" / "model", dimension=DIMENSION)
    assert model.encoder.fingerprint == LocalEmbedder(EmbedderConfig(str(tiny_model))).fingerprint
    description = json.loads((tmp_path / "r" / "model" / "reward.json").read_text())
    assert description["config"]["scorer"] == "product"
    assert "| val/top1 | " in (tmp_path / "r" / "model" / "README.md").read_text()
    latest = str(fitted / "checkpoints" / "latest.ckpt")
    with pytest.raises(ConfigError, match="a checkpoint of kind 'embedding' where this command trains 'reward'"):
        run(["reward", "fit", *arguments, "--out", str(tmp_path / "other"), "--ckpt_path", latest])


@pytest.mark.parametrize("path", sorted(CONFIGS.glob("*.yaml")), ids=lambda path: path.name)
def test_every_configuration_is_valid(path, capsys):
    kind = path.stem.split("-")[0]
    data = "[x.safetensors]" if kind == "evidence" else "x.jsonl"
    with pytest.raises(SystemExit) as ended:
        run([kind, "fit", "--config", str(path), "--data.train", data, "--print_config"])
    assert ended.value.code == 0
    printed = yaml.safe_load(capsys.readouterr().out)
    given = yaml.safe_load(path.read_text())
    assert printed["out"] == given["out"]
    assert printed["trainer"]["max_epochs"] == given["trainer"]["max_epochs"]


def test_unknown_models_and_help(capsys):
    assert run([]) == 0
    assert "qgrag train embedding fit" in capsys.readouterr().out
    for kind, data in (("embedding", "pairs/train.jsonl"), ("reward", "rewards/train.jsonl")):
        with pytest.raises(SystemExit):
            run([kind, "--help"])
        said = capsys.readouterr().out
        assert data in said
        assert "qgrag data" in said
        assert "predict" not in said
    with pytest.raises(InputError, match="did you mean 'reward'"):
        run(["rewards", "fit"])
