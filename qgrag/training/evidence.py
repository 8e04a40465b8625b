"""Command line of training the evidence model."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pytorch_lightning import LightningModule

from qgrag.models.evidence_checkpoint import EvidenceCheckpoint, write_evidence_model
from qgrag.training.command_line import TrainingCLI, run_cli
from qgrag.training.evidence_data import EvidencePoolData
from qgrag.training.evidence_module import EvidenceModule
from qgrag.training.export import CARD, TrainingRecord


class EvidenceCLI(TrainingCLI):
    """Exports a folder that the `auto` retriever takes as its `model`."""

    about = (
        "Trains the model by which 'auto' chooses from the pool of all retrievers, on what 'qgrag data evidence' "
        "writes: fit --config configs/train/evidence.yaml --data.train '[ev/train.safetensors]' "
        "--data.val '[ev/val.safetensors]' --out runs/mine. runs/mine/model is then named as auto's 'model'. Several "
        "files train one model on several corpora. The same command with --ckpt_path runs/mine/checkpoints/latest.ckpt "
        "goes on after a stop. test takes --data.test and --ckpt_path."
    )
    kind = "evidence"
    monitor = "val/recall"
    shown = ("val/recall", "val/all_evidence")

    def export(self, module: LightningModule, folder: Path, record: TrainingRecord) -> str:
        assert isinstance(module, EvidenceModule)
        data: Any = self.datamodule
        first = data.first
        checkpoint = EvidenceCheckpoint(module.model, first.members, first.features, first.depth, first.size)
        write_evidence_model(folder, checkpoint)
        (folder / CARD).write_text(_card(checkpoint, record), encoding="utf-8")
        return f"an evidence model over the pools of {', '.join(first.members)}"


def _card(checkpoint: EvidenceCheckpoint, record: TrainingRecord) -> str:
    c = checkpoint.model.config
    size = sum(parameter.numel() for parameter in checkpoint.model.parameters())
    reads = "features, token states and sentences" if c.text == "attention" else "features alone"
    return f"""# Evidence model

Scores the candidates of a pool together: {c.layers} layers of attention among candidates, {size:,} parameters, reading
{reads}. Pools are made of the first {checkpoint.depth} chunks of {", ".join(checkpoint.members)}, at most
{checkpoint.size} per question. Loaded by `qgrag.models.evidence_checkpoint.read_evidence_model`, or as `model` of the
retriever `auto`.

{record.to_markdown()}"""


def main(arguments: Sequence[str], program: str = "train/evidence.py") -> None:
    """`fit`, `validate` or `test`, as Lightning's command line has them."""
    run_cli(EvidenceCLI, EvidenceModule, EvidencePoolData, arguments, program)
