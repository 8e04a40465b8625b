"""A hub of 100,000 edges beside a small neighbourhood that answers the query."""

import re
import tracemalloc
from collections.abc import Sequence
from types import SimpleNamespace

import pyarrow as pa
import pytest
import torch
from torch import Tensor
from torch.nn.functional import normalize
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from qgrag.corpus.records import Chunk
from qgrag.index.knowledge.graph import (
    DESCRIPTION_SCHEMA,
    ENTITY_SCHEMA,
    MENTION_SCHEMA,
    MERGE_SCHEMA,
    TRIPLE_SCHEMA,
    KnowledgeGraph,
)
from qgrag.index.vectors import VectorIndex
from qgrag.retrieval.methods.dual.retriever import DualConfig, DualRetriever
from qgrag.retrieval.methods.fg.retriever import FGConfig, FGRetriever
from qgrag.retrieval.methods.qmkgf.retriever import QMKGFConfig, QMKGFRetriever

SPOKES = 100_000
CHUNKS = 1_000
HUB, FILM, ADA, RIGA, FIRST_SPOKE = range(5)
FILM_CHUNK, ADA_CHUNK, BIRTH_CHUNK = CHUNKS, CHUNKS + 1, CHUNKS + 2
QUERY = "Where was the director of Solstice born, in Hubland?"
MEGABYTE = 2**20
DIMENSION = 384
OTHER = 3
AXES = {
    "director": 0,
    "directed": 0,
    "born": 0,
    "solstice": 1,
    "ada": 1,
    "riga": 1,
    "hubland": 2,
    "contains": 2,
    "place": 2,
}


class WordEmbedder:
    """Unit vectors of a real model's length that count the words of each axis; texts without such words share one."""

    def encode(self, texts: Sequence[str], *, description: str = "") -> Tensor:
        counts = torch.zeros(len(texts), DIMENSION)
        for row, text in enumerate(texts):
            for word in re.findall("[a-z]+", text.lower()):
                if word in AXES:
                    counts[row, AXES[word]] += 1
        counts[~counts.any(1), OTHER] = 1
        return normalize(counts)

    encode_queries = encode
    name = fingerprint = "words"
    dimension = DIMENSION


def wheel() -> KnowledgeGraph:
    """Hubland with its spokes, each a fact of one of the first chunks; Solstice, its director, and her birthplace.

    Solstice lies in Hubland too, so that the hub is one step from the answer.
    """
    names = ["Hubland", "Solstice", "Ada", "Riga", *(f"Place {i}" for i in range(SPOKES))]
    spokes = [(HUB, "contains", FIRST_SPOKE + i, 1.0, "", [i % CHUNKS]) for i in range(SPOKES)]
    small = [
        (FILM, "directed by", ADA, 1.0, "", [FILM_CHUNK]),
        (FILM, "made in", HUB, 1.0, "", [FILM_CHUNK]),
        (ADA, "born in", RIGA, 1.0, "", [BIRTH_CHUNK]),
    ]
    mentions = [(HUB, chunk, 1, False) for chunk in range(CHUNKS)]
    mentions += [(FILM, FILM_CHUNK, 1, True), (ADA, FILM_CHUNK, 1, False), (ADA, ADA_CHUNK, 1, True)]
    mentions += [(ADA, BIRTH_CHUNK, 1, False), (RIGA, BIRTH_CHUNK, 1, False)]
    mentions += [(FIRST_SPOKE + i, i % CHUNKS, 1, False) for i in range(SPOKES)]
    relations = ["born in", "contains", "directed by", "made in"]
    told = [(HUB, chunk, f"Place {chunk} lies in Hubland.") for chunk in range(CHUNKS)]
    told += [(FILM, FILM_CHUNK, "Solstice was directed by Ada."), (ADA, ADA_CHUNK, "Ada, a director.")]
    told += [(ADA, BIRTH_CHUNK, "Ada was born in Riga."), (RIGA, BIRTH_CHUNK, "Ada was born in Riga.")]
    told += [(FIRST_SPOKE + i, i % CHUNKS, f"Place {i} lies in Hubland.") for i in range(SPOKES)]
    return KnowledgeGraph(
        entities=table(ENTITY_SCHEMA, [(name, "", [], row in (FILM, ADA)) for row, name in enumerate(names)]),
        triples=table(TRIPLE_SCHEMA, sorted(spokes + small, key=lambda row: (row[0], row[2]))),
        mentions=table(MENTION_SCHEMA, mentions),
        descriptions=table(DESCRIPTION_SCHEMA, told),
        merges=table(MERGE_SCHEMA, []),
        vectors=WordEmbedder().encode(names),
        relation_vectors=WordEmbedder().encode(relations),
        description_vectors=torch.empty(0, DIMENSION),
        triple_vectors=torch.empty(0, DIMENSION),
    )


def table(schema, rows):
    columns = zip(*rows, strict=True) if rows else [()] * len(schema)
    return pa.table([pa.array(list(c), f.type) for c, f in zip(columns, schema, strict=True)], schema=schema)


@pytest.fixture(scope="module")
def index():
    texts = [f"Place {i} lies in Hubland." for i in range(CHUNKS)]
    texts += ["Solstice was directed by Ada.", "Ada, a director.", "Ada was born in Riga."]
    titles = {FILM_CHUNK: "Solstice", ADA_CHUNK: "Ada"}
    embedder = WordEmbedder()
    chunks = [Chunk(f"d{i}", 0, 0, len(text), text, titles.get(i, "")) for i, text in enumerate(texts)]
    return SimpleNamespace(
        chunks=chunks,
        knowledge_graph=wheel(),
        passages=VectorIndex.exact(embedder.encode([chunk.passage for chunk in chunks])),
        embedder=embedder,
        document_ids=[(chunk.document_id,) for chunk in chunks],
    )


class LargestTensor(TorchDispatchMode):
    """Bytes of the largest tensor made meanwhile; views of what was there before are not counted."""

    nbytes = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        made = func(*args, **(kwargs or {}))
        before = {tensor.untyped_storage().data_ptr() for tensor in tensors_in((args, kwargs))}
        new = (tensor for tensor in tensors_in(made) if tensor.untyped_storage().data_ptr() not in before)
        self.nbytes = max([self.nbytes, *(tensor.numel() * tensor.element_size() for tensor in new)])
        return made


def tensors_in(tree):
    return [leaf for leaf in tree_leaves(tree) if isinstance(leaf, Tensor)]


RETRIEVERS = {
    "dual": lambda index: DualRetriever(index, DualConfig(max_triples=20)),
    "fg": lambda index: FGRetriever(index, FGConfig(matches=2)),
    "qmkgf": lambda index: QMKGFRetriever(index, QMKGFConfig(max_neighbours=50)),
}


@pytest.mark.parametrize("name", RETRIEVERS)
def test_hub_costs_a_batch_of_32_bounded_memory_and_drowns_nothing(index, name):
    retriever = RETRIEVERS[name](index)
    retriever.retrieve([QUERY])
    tracemalloc.start()
    try:
        with LargestTensor() as tensors:
            results = retriever.retrieve([QUERY] * 32, top_k=5)
        python_peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert len({str(result.to_dict()) for result in results}) == 1
    result = results[0]
    assert {"Hubland", "Solstice"} <= {link.name for link in result.evidence.links}
    found = {hit.document_id for hit in result.hits[:3]}
    assert {f"d{FILM_CHUNK}", f"d{BIRTH_CHUNK}"} <= found
    assert tensors.nbytes < 96 * MEGABYTE
    assert python_peak < 32 * MEGABYTE
    if name != "fg":
        triples = result.evidence.triples if name == "dual" else result.evidence.fused
        said = {(triple.head, triple.relation, triple.tail) for triple in triples}
        assert {("Solstice", "directed by", "Ada"), ("Ada", "born in", "Riga")} <= said
        assert len(triples) <= 100
    else:
        assert all(entity.reached <= 2 * FGConfig().max_nodes for entity in result.evidence.entities)
