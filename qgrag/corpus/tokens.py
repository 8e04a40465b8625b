"""Token spans from a Hugging Face `tokenizer.json`, without torch or transformers."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
from tokenizers import Tokenizer

from qgrag.errors import InputError

MAX_TOKEN_CHARACTERS = 100
"""WordPiece takes any longer word for one unknown token."""


class TokenizerSpans:
    """Maps texts to the character spans of their tokens, without truncation, padding or special tokens.

    A token of more than MAX_TOKEN_CHARACTERS characters counts as one token for each of its characters:
    otherwise an unknown word of any length would fit every window.
    """

    def __init__(self, path: str | Path) -> None:
        """Load `tokenizer.json`, or the one in the folder `path`.

        Raises:
            InputError: if there is no such file or it is no tokenizer.
        """
        file = Path(path)
        file = file / "tokenizer.json" if file.is_dir() else file
        if not file.is_file():
            raise InputError(f"{file}: no such tokenizer; give a model folder that holds tokenizer.json")
        try:
            self._tokenizer = Tokenizer.from_str(file.read_text(encoding="utf-8"))
        except Exception as error:  # tokenizers has no class of its own for a malformed file
            raise InputError(f"{file}: not a tokenizer file: {error}") from error
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()

    def __call__(self, texts: Sequence[str]) -> list[npt.NDArray[np.int64]]:
        """Per text an int64 array (tokens, 2) of spans [start, end); zero-width tokens are left out."""
        encodings = self._tokenizer.encode_batch(list(texts), add_special_tokens=False)
        return [_clean(encoding.offsets) for encoding in encodings]


def _clean(offsets: list[tuple[int, int]]) -> npt.NDArray[np.int64]:
    spans = np.asarray(offsets, dtype=np.int64).reshape(-1, 2)
    widths = spans[:, 1] - spans[:, 0]
    if np.any(widths > MAX_TOKEN_CHARACTERS):
        parts = [
            np.arange(start, end)[:, None] + [0, 1] if end - start > MAX_TOKEN_CHARACTERS else np.array([[start, end]])
            for start, end in spans
        ]
        return np.concatenate(parts)
    return spans[widths > 0]
