import random
from pathlib import Path

import pytest
import torch

from qgrag.training.pairs import TrainingPair, write_pairs
from qgrag.training.reward_examples import LabelledSubgraph, RewardExample, write_rewards

TOPICS = ["river", "opera", "planet", "bridge", "poem", "island", "battle", "engine", "garden", "mountain"]
PLACES = ["austria", "brazil", "china", "denmark", "egypt", "france", "greece", "hungary", "india", "japan"]
WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "which", "is", "in", "the", "a", "of", "lies", "was", "?", "."]
DIMENSION = 32


@pytest.fixture(autouse=True)
def _one_thread():
    torch.set_num_threads(1)


@pytest.fixture(scope="session")
def tiny_model(tmp_path_factory) -> Path:
    """A sentence-transformers folder: a BERT of two layers and 32 dimensions with random weights, no dropout."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Normalize

    model = SentenceTransformer(str(plain_transformer(tmp_path_factory.mktemp("plain"))), device="cpu")
    model.append(Normalize())
    folder = tmp_path_factory.mktemp("tiny") / "model"
    model.save_pretrained(str(folder))
    return folder


def plain_transformer(folder: Path, hidden: int = DIMENSION, dropout: float = 0.0) -> Path:
    from tokenizers import BertWordPieceTokenizer
    from transformers import BertConfig, BertModel, BertTokenizerFast

    vocabulary = [*WORDS, *TOPICS, *PLACES, *(f"n{i}" for i in range(40))]
    (folder / "vocab.txt").write_text("\n".join(vocabulary))
    BertWordPieceTokenizer(str(folder / "vocab.txt"), lowercase=True).save(str(folder / "tokenizer.json"))
    BertTokenizerFast(tokenizer_file=str(folder / "tokenizer.json"), model_max_length=32).save_pretrained(str(folder))
    torch.manual_seed(1)
    config = BertConfig(
        vocab_size=len(vocabulary),
        hidden_size=hidden,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=64,
        max_position_embeddings=64,
        hidden_dropout_prob=dropout,
        attention_probs_dropout_prob=dropout,
    )
    BertModel(config).save_pretrained(str(folder))
    return folder


def make_pairs(count: int, seed: int = 0) -> list[TrainingPair]:
    chance = random.Random(seed)
    combinations = [(topic, place) for topic in TOPICS for place in PLACES]
    chance.shuffle(combinations)
    pairs = []
    for i, (topic, place) in enumerate(combinations[:count]):
        other = chance.choice([p for p in PLACES if p != place])
        pairs.append(
            TrainingPair(
                f"which {topic} is in {place} ?",
                (f"the {topic} of {place} is n{i % 40} .",),
                () if i % 5 == 0 else (f"the {topic} of {other} is n{(i + 7) % 40} .",),
                group=topic,
            )
        )
    return pairs


@pytest.fixture(scope="session")
def pair_files(tmp_path_factory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("pairs")
    pairs = make_pairs(60)
    for name, part in {"train": pairs[:40], "val": pairs[40:50], "test": pairs[50:]}.items():
        write_pairs(folder / f"{name}.jsonl", part)
    return {name: str(folder / f"{name}.jsonl") for name in ("train", "val", "test")}


def make_rewards(count: int, seed: int = 0) -> list[RewardExample]:
    """Questions of which one subgraph speaks of their place, and is the most useful."""
    chance = random.Random(seed)
    examples = []
    for number in range(count):
        topic, place = chance.choice(TOPICS), chance.choice(PLACES)
        useful = chance.randrange(3)
        subgraphs = []
        for i, name in enumerate(("one_hop", "multi_hop", "importance")):
            where = place if i == useful else chance.choice([p for p in PLACES if p != place])
            triples = [f"{chance.choice(TOPICS)} lies in {where}" for _ in range(chance.randint(1, 4))]
            subgraphs.append(LabelledSubgraph(name, tuple(triples), 0.9 if i == useful else 0.2))
        examples.append(RewardExample(f"which {topic} is in {place} ?", tuple(subgraphs), f"q{number}"))
    return examples


@pytest.fixture(scope="session")
def reward_files(tmp_path_factory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("rewards")
    for seed, (name, count) in enumerate({"train": 240, "val": 60, "test": 40}.items()):
        write_rewards(folder / f"{name}.jsonl", make_rewards(count, seed))
    return {name: str(folder / f"{name}.jsonl") for name in ("train", "val", "test")}
