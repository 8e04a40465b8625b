"""What merging names by similarity would do to an index, before it is built that way."""

import json
from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor

from qgrag.corpus.records import text_key
from qgrag.errors import IndexFormatError
from qgrag.extraction.records import Facts
from qgrag.index.extractions import decode_facts, load_stored
from qgrag.index.knowledge.build import preview_merges
from qgrag.index.knowledge.entity_merge import EntityMergeConfig, Merge
from qgrag.index.reader import Index


def preview_index_merges(index: Index, merge: EntityMergeConfig) -> list[Merge]:
    """Every merge that a build with these settings would look at, with the reason where it would refuse it.

    The facts are those kept with the index; only names that the graph did not embed are embedded. Nothing is
    written.

    Args:
        index: with a knowledge graph.
        merge: in place of the index's own settings.

    Raises:
        MissingComponentError: the index has no knowledge graph.
        IndexFormatError: the facts of a chunk are not there.
    """
    graph = index.knowledge_graph
    config = index.config.knowledge_graph
    assert config is not None
    rows = graph.embedded.nonzero()[:, 0].tolist()
    known = {graph.names[row]: graph.vectors[row] for row in rows}

    def encode(texts: Sequence[str], description: str) -> Tensor:
        new = [text for text in texts if text not in known]
        made = dict(zip(new, index.embedder.encode(new, description=description), strict=True))
        vectors = [made[text] if text in made else known[text] for text in texts]
        return torch.stack(vectors) if vectors else torch.empty(0, index.embedder.dimension)

    return preview_merges(index.chunks, stored_facts(index), replace(config, merge=merge), encode)


def stored_facts(index: Index) -> list[Facts]:
    """What was extracted from each chunk, as kept with the index.

    Raises:
        IndexFormatError: the facts of a chunk are not there.
    """
    fingerprint = index.manifest.extractors.get("facts", "")
    stored = load_stored(index.folder, "facts")
    facts = []
    for chunk in index.chunks:
        payload = stored.get(text_key(f"{fingerprint}\x00{chunk.title}\x00{chunk.readable}"))
        if payload is None:
            raise IndexFormatError(
                f"{index.folder}: keeps no facts of chunk {chunk.id}, whose extraction failed; build the index again"
            )
        facts.append(decode_facts(json.loads(payload)["value"]))
    return facts
