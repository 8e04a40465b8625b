"""Training throughput: beside sentence-transformers' own trainer, and of cached vectors beside an encoder in the loop.

python benchmarks/training.py encoder --pairs pairs/train.jsonl --steps 30
python benchmarks/training.py reward --rewards rewards/train.jsonl --steps 30

`encoder` needs datasets (in the extra `benchmarks`) for the other trainer. Both sides take the same texts, batches,
lengths, loss, optimizer and number of threads, and take turns, so that a busy machine slows both. No passage comes
twice, because qgrag would encode it once.
"""

import argparse
import json
import logging
import statistics
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from pytorch_lightning import Callback, Trainer

from qgrag.models.resolve import resolve_model
from qgrag.models.reward import RewardConfig
from qgrag.training.embedding_data import PairData
from qgrag.training.embedding_module import EmbeddingModule
from qgrag.training.optimizer import OptimizerConfig
from qgrag.training.pairs import TrainingPair, read_pairs, write_pairs
from qgrag.training.reward_data import SubgraphData
from qgrag.training.reward_examples import read_rewards
from qgrag.training.reward_module import RewardModule
from qgrag.training.text_encoder import TextEncoderConfig, load_sentence_transformer

MODEL = "sentence-transformers/all-MiniLM-L6-v2"
WARM_UP = 3


class Stopwatch(Callback):
    """Seconds of the steps after the first few."""

    def __init__(self) -> None:
        self.times: list[float] = []

    def on_train_batch_end(self, *args: Any) -> None:
        self.times.append(time.perf_counter())

    @property
    def steps_a_second(self) -> float:
        timed = self.times[WARM_UP - 1 :]
        return (len(timed) - 1) / (timed[-1] - timed[0])


def fit(module: Any, data: Any, steps: int) -> float:
    watch = Stopwatch()
    trainer = Trainer(
        max_steps=steps + WARM_UP,
        callbacks=[watch],
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        use_distributed_sampler=False,
        limit_val_batches=0,
    )
    trainer.fit(module, datamodule=data)
    return watch.steps_a_second


def ours(pairs: Path, batch: int, steps: int) -> float:
    encoder = TextEncoderConfig(MODEL, query_tokens=64, passage_tokens=256)
    module = EmbeddingModule(encoder, OptimizerConfig(learning_rate=1e-5, warmup=0.0), temperature=0.05)
    return fit(module, PairData(str(pairs), batch_size=batch, negatives=1), steps)


def theirs(pairs: Path, batch: int, steps: int) -> float:
    from datasets import Dataset
    from sentence_transformers import SentenceTransformerTrainer, SentenceTransformerTrainingArguments
    from sentence_transformers.losses import MultipleNegativesRankingLoss
    from transformers import TrainerCallback

    class Watch(TrainerCallback):
        def __init__(self) -> None:
            self.watch = Stopwatch()

        def on_step_end(self, *args: Any, **kwargs: Any) -> None:
            self.watch.on_train_batch_end()

    rows = [(p.query, p.pos[0], p.neg[0]) for p in read_pairs(pairs)]
    columns = dict(zip(("anchor", "positive", "negative"), map(list, zip(*rows, strict=True)), strict=True))
    model = load_sentence_transformer(resolve_model(MODEL))
    model.max_seq_length = 256
    watch = Watch()
    with tempfile.TemporaryDirectory() as folder:
        arguments = SentenceTransformerTrainingArguments(
            output_dir=folder,
            max_steps=steps + WARM_UP,
            per_device_train_batch_size=batch,
            learning_rate=1e-5,
            weight_decay=0.01,
            dataloader_drop_last=True,
            report_to=[],
            save_strategy="no",
            logging_strategy="no",
            disable_tqdm=True,
            use_cpu=not torch.cuda.is_available(),
        )
        trainer = SentenceTransformerTrainer(
            model=model,
            args=arguments,
            train_dataset=Dataset.from_dict(columns),
            loss=MultipleNegativesRankingLoss(model, scale=20.0),
            callbacks=[watch],
        )
        trainer.train()
    return watch.watch.steps_a_second


def distinct(pairs: Sequence[TrainingPair]) -> list[TrainingPair]:
    """Pairs that have a negative, without those of which an earlier pair has a passage."""
    seen: set[str] = set()
    kept = []
    for pair in pairs:
        texts = {pair.pos[0], *pair.neg[:1]}
        if pair.neg and not texts & seen:
            kept.append(replace(pair, pos=pair.pos[:1], neg=pair.neg[:1], pos_ids=(), neg_ids=()))
            seen |= texts
    return kept


def bench_encoder(args: argparse.Namespace) -> dict[str, Any]:
    rates: dict[str, list[float]] = {"qgrag": [], "sentence-transformers": []}
    with tempfile.TemporaryDirectory() as folder:
        pairs = Path(folder) / "pairs.jsonl"
        write_pairs(pairs, distinct(read_pairs(args.pairs))[: args.batch * (args.steps + WARM_UP)])
        for _ in range(args.rounds):
            rates["qgrag"].append(ours(pairs, args.batch, args.steps))
            rates["sentence-transformers"].append(theirs(pairs, args.batch, args.steps))
    ratios = [a / b for a, b in zip(rates["qgrag"], rates["sentence-transformers"], strict=True)]
    return {
        "batch": args.batch,
        "steps": args.steps,
        "steps_a_second": rates,
        "median_ratio": statistics.median(ratios),
    }


def bench_reward(args: argparse.Namespace) -> dict[str, Any]:
    examples = read_rewards(args.rewards)
    subgraphs = args.batch * statistics.mean(len(example.subgraphs) for example in examples)
    rates: dict[str, float] = {}
    for encoding, steps in (("cached", args.steps * 10), ("frozen", args.steps), ("trained", args.steps)):
        module = RewardModule(
            RewardConfig(dimension=384, scorer="product"), TextEncoderConfig(MODEL), encoding=encoding
        )
        data = SubgraphData(args.rewards, batch_size=args.batch, cache=args.cache)
        rates[encoding] = subgraphs * fit(module, data, steps)
    ratios = {f"cached/{other}": rates["cached"] / rates[other] for other in ("frozen", "trained")}
    return {"batch": args.batch, "subgraphs_a_second": rates, **ratios}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    encoder = commands.add_parser("encoder")
    encoder.add_argument("--pairs", required=True)
    encoder.add_argument("--batch", type=int, default=16)
    encoder.add_argument("--rounds", type=int, default=3)
    reward = commands.add_parser("reward")
    reward.add_argument("--rewards", required=True)
    reward.add_argument("--batch", type=int, default=16)
    reward.add_argument("--cache", default="runs/vectors")
    for command in (encoder, reward):
        command.add_argument("--steps", type=int, default=30)
        command.add_argument("--threads", type=int, default=2)
    args = parser.parse_args()
    logging.getLogger("pytorch_lightning").setLevel(logging.ERROR)
    torch.set_num_threads(args.threads)
    result = bench_encoder(args) if args.command == "encoder" else bench_reward(args)
    print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
