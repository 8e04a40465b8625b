"""METEOR through NLTK, with WordNet's synonyms or not at all: a score without them would bear the wrong name."""

import re
from collections.abc import Callable, Sequence
from typing import Any

from qgrag.errors import InputError, MissingComponentError, MissingExtraError

WORD = re.compile(r"\w+")
Meteor = Callable[[str, Sequence[str]], float]


def load_meteor(wordnet: Any = None) -> Meteor:
    """A function from an English answer and its references to METEOR, the best reference counting.

    Banerjee and Lavie (2005) with NLTK's parameters: words match exactly, by Porter's stem or as WordNet synonyms of
    their stems (so NLTK has it); alpha = 0.9, beta = 3, gamma = 0.5. Words are runs of letters and digits, in lower
    case.

    Args:
        wordnet: NLTK's reader of WordNet; the one of its data folder if not given.

    Raises:
        MissingExtraError: NLTK is not installed.
        MissingComponentError: WordNet is in none of the folders that NLTK searches.
    """
    try:
        from nltk.corpus import wordnet as installed
        from nltk.translate.meteor_score import meteor_score
    except ImportError as error:
        raise MissingExtraError("METEOR needs NLTK; install it with: pip install 'qgrag[answers]'") from error
    if wordnet is None:
        wordnet = installed
        try:
            wordnet.ensure_loaded()
        except LookupError as error:
            raise MissingComponentError(
                "METEOR needs WordNet, which NLTK does not find; get it with: python -m nltk.downloader wordnet "
                "(where there is no network, copy its folder nltk_data here and name it in NLTK_DATA)"
            ) from error

    def meteor(prediction: str, references: Sequence[str]) -> float:
        if not references:
            raise InputError("an answer needs at least one reference to be compared with")
        words = [WORD.findall(reference.lower()) for reference in references]
        return float(meteor_score(words, WORD.findall(prediction.lower()), wordnet=wordnet))

    return meteor
