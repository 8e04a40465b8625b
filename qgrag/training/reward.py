"""Command line of reward training."""

from collections.abc import Sequence
from pathlib import Path

from pytorch_lightning import LightningModule

from qgrag.models.embedder import LocalEmbedder
from qgrag.models.reward_checkpoint import Encoder
from qgrag.training.command_line import TrainingCLI, run_cli
from qgrag.training.export import CARD, TrainingRecord, export_embedding_model
from qgrag.training.reward_data import SubgraphData
from qgrag.training.reward_module import RewardModule


class RewardCLI(TrainingCLI):
    """Exports a folder that `RewardModel.from_folder` loads; an encoder trained along goes into `encoder`."""

    about = (
        "Trains the model that chooses among QMKGF's subgraphs on what 'qgrag data rewards' writes: fit --config "
        "configs/train/reward-triples.yaml --data.train rewards/train.jsonl --data.val rewards/val.jsonl "
        "--out runs/mine. runs/mine/model is then named as the retriever's 'reward'. The same command with --ckpt_path "
        "runs/mine/checkpoints/latest.ckpt goes on after a stop. test takes --data.test and --ckpt_path."
    )
    kind = "reward"
    monitor = "val/top1"
    shown = ("val/top1", "val/top1_cosine", "val/top1_chance")

    def export(self, module: LightningModule, folder: Path, record: TrainingRecord) -> str:
        assert isinstance(module, RewardModule)
        model = module.model
        encoder = module.embedder
        if module.encoding == "trained":
            encoder = LocalEmbedder(export_embedding_model(module.encoder, folder / "encoder", record))
        model.encoder = Encoder(encoder.name, encoder.fingerprint)
        model.save(folder)
        (folder / CARD).write_text(_card(model.config.heads, encoder, record), encoding="utf-8")
        return f"a reward model over {model.config.items} for vectors of {encoder.name}"


def _card(heads: int, encoder: LocalEmbedder, record: TrainingRecord) -> str:
    return f"""# Reward model

Scores subgraphs of a knowledge graph by how much they help a query: {heads} heads of attention of the query over
vectors of `{encoder.name}` (fingerprint `{encoder.fingerprint}`). Loaded by
`qgrag.models.reward.RewardModel.from_folder`.

{record.to_markdown()}"""


def main(arguments: Sequence[str], program: str = "train/reward.py") -> None:
    """`fit`, `validate` or `test`, as Lightning's command line has them."""
    run_cli(RewardCLI, RewardModule, SubgraphData, arguments, program)
