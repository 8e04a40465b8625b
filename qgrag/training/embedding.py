"""Command line of embedding fine-tuning."""

from collections.abc import Sequence
from pathlib import Path

from pytorch_lightning import LightningModule

from qgrag.models.embedder import LocalEmbedder
from qgrag.training.command_line import TrainingCLI, run_cli
from qgrag.training.embedding_data import PairData
from qgrag.training.embedding_module import EmbeddingModule
from qgrag.training.export import TrainingRecord, export_embedding_model


class EmbeddingCLI(TrainingCLI):
    """Exports a sentence-transformers folder."""

    about = (
        "Fine-tunes an embedding model on the pairs that 'qgrag data pairs' writes: fit --config "
        "configs/train/embedding-full.yaml --data.train pairs/train.jsonl --data.val pairs/val.jsonl --out runs/mine. "
        "runs/mine/model is then a sentence-transformers folder. The same command with --ckpt_path "
        "runs/mine/checkpoints/latest.ckpt goes on after a stop. test takes --data.test and --ckpt_path."
    )
    kind = "embedding"
    monitor = "val/mrr@10"
    shown = ("val/mrr@1", "val/mrr@10", "val/recall@10", "val/ndcg@10")

    def export(self, module: LightningModule, folder: Path, record: TrainingRecord) -> str:
        assert isinstance(module, EmbeddingModule)
        config = export_embedding_model(module.encoder, folder, record)
        return f"a sentence-transformers model with fingerprint {LocalEmbedder(config).fingerprint}"


def main(arguments: Sequence[str], program: str = "train/embedding.py") -> None:
    """`fit`, `validate` or `test`, as Lightning's command line has them."""
    run_cli(EmbeddingCLI, EmbeddingModule, PairData, arguments, program)
