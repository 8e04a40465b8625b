"""The tokenizer of a named model, as the corpus needs it."""

from qgrag.corpus.chunking import TokenSpans
from qgrag.corpus.tokens import TokenizerSpans
from qgrag.models.resolve import resolve_model


def token_spans(model: str) -> TokenSpans:
    """Character spans of the tokens of `model`'s tokenizer, truncation and padding off.

    Raises:
        ModelNotFoundError: see `resolve_model`.
    """
    return TokenizerSpans(resolve_model(model))
