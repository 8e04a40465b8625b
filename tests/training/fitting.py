"""Short runs of the embedding module, in this process or, as a script, on several."""

import sys
from pathlib import Path

import torch
from pytorch_lightning import Trainer
from safetensors.torch import save_file

from qgrag.training.embedding_data import PairData
from qgrag.training.embedding_module import EmbeddingModule
from qgrag.training.optimizer import OptimizerConfig
from qgrag.training.text_encoder import LoRA, TextEncoderConfig

TEXTS = ["which river is in austria ?", "the bridge of japan is n3 .", "a poem was in the garden of egypt"]


def make_module(model: str | Path, *, lora: LoRA | None = None, **parameters) -> EmbeddingModule:
    torch.manual_seed(0)
    encoder = TextEncoderConfig(str(model), query_tokens=16, passage_tokens=24, lora=lora)
    return EmbeddingModule(encoder, OptimizerConfig(learning_rate=1e-3), **parameters)


def fit(module, train: str, out: Path, *, batch_size: int = 8, ckpt_path=None, callbacks=(), val=None, **trainer):
    options = {"accelerator": "cpu", "devices": 1, "logger": False, "enable_progress_bar": False, "max_steps": 6}
    options |= {"enable_checkpointing": bool(callbacks), "enable_model_summary": False, "num_sanity_val_steps": 0}
    run = Trainer(
        default_root_dir=str(out), use_distributed_sampler=False, callbacks=list(callbacks), **(options | trainer)
    )
    run.fit(module, datamodule=PairData(train, val, batch_size=batch_size), ckpt_path=ckpt_path, weights_only=True)
    return run


@torch.no_grad()
def vectors(module: EmbeddingModule) -> torch.Tensor:
    module.eval()
    return module.encoder(module.encoder.tokenize_passages(TEXTS))


if __name__ == "__main__":
    torch.set_num_threads(1)
    model, train, out = sys.argv[1:4]
    module = make_module(model)
    trainer = fit(module, train, Path(out), batch_size=4, devices=2, strategy="ddp", max_steps=3)
    if trainer.global_rank == 0:
        save_file({"vectors": vectors(module)}, f"{out}/vectors.safetensors")
