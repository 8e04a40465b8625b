from collections.abc import Sequence

import pytest
import torch

from qgrag.corpus.records import Document
from qgrag.models.embedder import LocalEmbedder

NOTES = {
    "rivers/rhine": "The Rhine rises in the Swiss Alps. It flows through Basel, Cologne and Rotterdam.",
    "rivers/danube": "The Danube rises in the Black Forest. It crosses ten countries. Vienna lies on the Danube.",
    "cities/vienna": "Vienna is the capital of Austria. Gustav Mahler directed the Vienna Court Opera from 1897.",
    "people/mahler": "Gustav Mahler was born in 1860 in Kaliště. He wrote nine symphonies and conducted in New York.",
    "cities/basel": "Basel lies on the Rhine. Its university was founded in 1460.",
    "people/euler": "Leonhard Euler was born in Basel in 1707. He worked in Saint Petersburg and Berlin.",
}


class CountingEmbedder(LocalEmbedder):
    """The real model, which also remembers what it was asked to encode, and can be told to die."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[str] = []
        self.calls_left = 10**9

    def encode(self, texts: Sequence[str], *, description: str = "Embedding") -> torch.Tensor:
        if self.calls_left == 0:
            raise KeyboardInterrupt
        self.calls_left -= 1
        self.seen.extend(texts)
        return super().encode(texts, description=description)


@pytest.fixture(scope="session")
def shared_counting_embedder() -> CountingEmbedder:
    return CountingEmbedder()


@pytest.fixture
def counting(shared_counting_embedder) -> CountingEmbedder:
    shared_counting_embedder.seen.clear()
    shared_counting_embedder.calls_left = 10**9
    return shared_counting_embedder


@pytest.fixture
def notes() -> list[Document]:
    return [Document(id, text, id.split("/")[1].title()) for id, text in NOTES.items()]
