"""The knowledge graph as tables and tensors, in memory and on disk."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import torch
from torch import Tensor

from qgrag.corpus.records import text_key
from qgrag.graph import CSR, Ragged, to_csr
from qgrag.graph.ragged import counts_to_ptr
from qgrag.index.storage import read_json, read_table, read_tensors, write_json, write_table, write_tensors

if TYPE_CHECKING:
    from torch_geometric.data import HeteroData

ENTITY_SCHEMA = pa.schema(
    [("name", pa.string()), ("type", pa.string()), ("aliases", pa.list_(pa.string())), ("titled", pa.bool_())]
)
TRIPLE_SCHEMA = pa.schema(
    [
        ("head", pa.int32()),
        ("relation", pa.string()),
        ("tail", pa.int32()),
        ("weight", pa.float32()),
        ("sentence", pa.string()),
        ("chunks", pa.list_(pa.int32())),
    ]
)
MENTION_SCHEMA = pa.schema(
    [("entity", pa.int32()), ("chunk", pa.int32()), ("count", pa.int32()), ("titled", pa.bool_())]
)
DESCRIPTION_SCHEMA = pa.schema([("entity", pa.int32()), ("chunk", pa.int32()), ("text", pa.string())])
MERGE_SCHEMA = pa.schema(
    [("kept", pa.string()), ("merged", pa.string()), ("rule", pa.string()), ("similarity", pa.float32())]
)
_TABLES = {
    "entities": ENTITY_SCHEMA,
    "triples": TRIPLE_SCHEMA,
    "mentions": MENTION_SCHEMA,
    "descriptions": DESCRIPTION_SCHEMA,
    "merges": MERGE_SCHEMA,
}
_VECTORS = {
    "names": "vectors",
    "relations": "relation_vectors",
    "descriptions": "description_vectors",
    "triples": "triple_vectors",
}


@dataclass(frozen=True, eq=False)
class KnowledgeGraph:
    """E entities, T triples between them, and their mentions in chunks.

    Entities are sorted by the key of their name; triples by head, tail and relation; mentions by entity and
    chunk; descriptions by entity and chunk.

    Args:
        entities: `ENTITY_SCHEMA`; `titled` marks the title of a document.
        triples: `TRIPLE_SCHEMA`; `weight` is the number of chunks that say it, `chunks` are their rows,
            ascending.
        mentions: `MENTION_SCHEMA`; `count` is how often the chunk names the entity, `titled` whether it is
            its title.
        descriptions: `DESCRIPTION_SCHEMA`; what the chunks tell of an entity.
        merges: `MERGE_SCHEMA`; each name that was joined to another, by which rule, and at what cosine.
        vectors: float32 [E, d], unit vectors of the names of entities that enough chunks mention, zeros for the
            others (among them values such as dates, and phrases that only triples hold).
        relation_vectors: float32 [R, d], unit vectors of `relation_names`.
        description_vectors: float32 [X, d], unit vectors of `description_texts`; [0, d] where they were not
            embedded.
        triple_vectors: float32 [T, d], unit vectors of the triples' texts; [0, d] where they were not embedded.
        dropped: what the gate of the build refused, by kind (`self_loops`, `unnamed`, `repeated_triples`).
    """

    entities: pa.Table
    triples: pa.Table
    mentions: pa.Table
    descriptions: pa.Table
    merges: pa.Table
    vectors: Tensor
    relation_vectors: Tensor
    description_vectors: Tensor
    triple_vectors: Tensor
    dropped: dict[str, int] = field(default_factory=dict)

    @property
    def num_entities(self) -> int:
        return int(self.entities.num_rows)

    @property
    def num_triples(self) -> int:
        return int(self.triples.num_rows)

    @cached_property
    def names(self) -> list[str]:
        """Canonical name of each entity."""
        return list(self.entities["name"].to_pylist())

    @cached_property
    def types(self) -> list[str]:
        return list(self.entities["type"].to_pylist())

    @cached_property
    def aliases(self) -> list[list[str]]:
        """Other spellings of each entity, without its canonical name."""
        return list(self.entities["aliases"].to_pylist())

    @cached_property
    def relations(self) -> list[str]:
        """Relation of each triple."""
        return list(self.triples["relation"].to_pylist())

    @cached_property
    def relation_names(self) -> list[str]:
        """The R distinct relations, sorted."""
        return sorted(set(self.relations))

    @cached_property
    def relation_ids(self) -> Tensor:
        """Row in `relation_names` of each triple's relation, int64 [T]."""
        row_of = {name: row for row, name in enumerate(self.relation_names)}
        return torch.tensor([row_of[name] for name in self.relations], dtype=torch.long)

    @cached_property
    def mentioned(self) -> Tensor:
        """Whether any chunk mentions each entity, bool [E]."""
        found = torch.zeros(self.num_entities, dtype=torch.bool)
        found[self.mention_index[0]] = True
        return found

    @cached_property
    def embedded(self) -> Tensor:
        """Whether each entity has a vector, bool [E]."""
        return self.vectors.any(1) if self.vectors.shape[1] else self.mentioned

    @cached_property
    def edge_index(self) -> Tensor:
        """Heads and tails of the triples, int64 [2, T]."""
        return torch.stack([_column(self.triples, "head"), _column(self.triples, "tail")])

    @cached_property
    def edge_weight(self) -> Tensor:
        """Number of chunks that say each triple, float32 [T]."""
        return torch.from_numpy(self.triples["weight"].to_numpy().copy())

    @cached_property
    def weighted_edges(self) -> CSR:
        """The triples in both directions with their weights, built once."""
        return to_csr(self.edge_index, self.edge_weight, num_nodes=self.num_entities, undirected=True)

    @cached_property
    def triple_chunks(self) -> Ragged:
        """Provenance of the triples: the chunks that say each of the T."""
        lists = self.triples["chunks"].combine_chunks()
        counts = torch.from_numpy(lists.value_lengths().to_numpy(zero_copy_only=False).copy()).long()
        return Ragged(torch.from_numpy(lists.flatten().to_numpy().copy()).long(), counts_to_ptr(counts))

    @cached_property
    def mention_index(self) -> Tensor:
        """Entities and the chunks that name them, int64 [2, M]."""
        return torch.stack([_column(self.mentions, "entity"), _column(self.mentions, "chunk")])

    @cached_property
    def mention_count(self) -> Tensor:
        """How often each mention's chunk names its entity, float32 [M]."""
        return _column(self.mentions, "count").float()

    @cached_property
    def mention_titled(self) -> Tensor:
        """Whether each mention's entity is its chunk's title, bool [M]."""
        return torch.from_numpy(self.mentions["titled"].to_numpy(zero_copy_only=False).copy())

    def rarity(self, num_chunks: int) -> Tensor:
        """log(1 + C / df) / log(1 + C) of each entity, float32 [E]: 1 for one that a single chunk mentions, near 0 for
        one that all do; df is the number of chunks that mention it, at least 1.

        Args:
            num_chunks: C, the chunks of the index.
        """
        frequency = torch.bincount(self.mention_index[0], minlength=self.num_entities).clamp(min=1)
        size = torch.tensor(max(2.0, num_chunks))
        return torch.log(1 + size / frequency) / torch.log(1 + size)

    @cached_property
    def descriptions_ptr(self) -> Tensor:
        """Entity e has the rows ptr[e] to ptr[e + 1] - 1 of `descriptions`; int64 [E + 1]."""
        return counts_to_ptr(torch.bincount(_column(self.descriptions, "entity"), minlength=self.num_entities))

    @cached_property
    def description_chunk(self) -> Tensor:
        """Chunk of each description, int64 [D]."""
        return _column(self.descriptions, "chunk")

    @cached_property
    def description_text(self) -> Tensor:
        """Row in `description_texts` of each description, int64 [D]."""
        return torch.from_numpy(self._texts.indices.to_numpy().copy()).long()

    @cached_property
    def description_texts(self) -> list[str]:
        """The X distinct texts of descriptions, in the order of their first description."""
        return list(self._texts.dictionary.to_pylist())

    @cached_property
    def _texts(self) -> pa.DictionaryArray:
        return self.descriptions["text"].combine_chunks().dictionary_encode()

    def triple_texts(self, rows: Sequence[int]) -> list[str]:
        """'head relation tail' for each of the given triples."""
        heads, tails = self.edge_index[:, list(rows)].tolist()
        names, relations = self.names, self.relations
        return [f"{names[h]} {relations[r]} {names[t]}" for h, r, t in zip(heads, rows, tails, strict=True)]

    def to_pyg(self, num_chunks: int) -> "HeteroData":
        """The graph as PyG data: `entity` and `chunk` nodes, `relates` and `mentioned_in` edges with their weights."""
        from torch_geometric.data import HeteroData

        data = HeteroData()
        data["entity"].num_nodes = self.num_entities
        data["entity"].x = self.vectors
        data["chunk"].num_nodes = num_chunks
        data["entity", "relates", "entity"].edge_index = self.edge_index
        data["entity", "relates", "entity"].edge_weight = self.edge_weight
        data["entity", "relates", "entity"].edge_type = self.relation_ids
        data["entity", "mentioned_in", "chunk"].edge_index = self.mention_index
        data["entity", "mentioned_in", "chunk"].edge_weight = self.mention_count
        return data

    def counts(self) -> dict[str, int]:
        """Sizes, for the manifest of an index and its report."""
        sizes = {"entities": self.num_entities, "triples": self.num_triples, "mentions": self.mentions.num_rows}
        return sizes | {"merged_names": self.merges.num_rows} | {f"dropped_{k}": v for k, v in self.dropped.items()}

    def known_vectors(self) -> Iterator[tuple[list[str], Tensor]]:
        """Content keys of embedded texts with their vectors, which the next build need not make again."""
        rows = self.embedded.nonzero()[:, 0]
        yield [text_key(self.names[row]) for row in rows.tolist()], self.vectors[rows]
        yield [text_key(name) for name in self.relation_names], self.relation_vectors
        if len(self.description_vectors):
            yield [text_key(text) for text in self.description_texts], self.description_vectors
        if len(self.triple_vectors):
            yield [text_key(text) for text in self.triple_texts(range(self.num_triples))], self.triple_vectors

    def check(self, num_chunks: int) -> list[str]:
        """What is wrong with the graph, empty if nothing: edges to nowhere, self-loops, entities that nothing holds."""
        problems = self.out_of_range(num_chunks)
        loops = int((self.edge_index[0] == self.edge_index[1]).sum())
        if loops:
            problems.append(f"knowledge graph: {loops} triples lead from an entity to itself")
        held = torch.zeros(self.num_entities, dtype=torch.bool)
        if not problems:
            held[self.edge_index.flatten()] = True
            held[self.mention_index[0]] = True
            held[_column(self.descriptions, "entity")] = True
            if orphans := int((~held).sum()):
                problems.append(f"knowledge graph: {orphans} entities occur in no chunk, triple or description")
            if unsupported := int((self.triple_chunks.counts() == 0).sum()):
                problems.append(f"knowledge graph: {unsupported} triples come from no chunk")
        held_by = {
            "entities": (self.vectors, self.num_entities),
            "relations": (self.relation_vectors, len(self.relation_names)),
            "descriptions": (self.description_vectors, len(self.description_vectors) and len(self.description_texts)),
            "triples": (self.triple_vectors, len(self.triple_vectors) and self.num_triples),
        }
        problems += [
            f"knowledge graph: {len(vectors)} vectors for {count} {what}"
            for what, (vectors, count) in held_by.items()
            if len(vectors) != count
        ]
        return problems

    def out_of_range(self, num_chunks: int) -> list[str]:
        """Ids that lead nowhere, empty if there are none; quick enough to be asked whenever a graph is loaded."""
        problems = []
        ends = {
            "triple": (self.edge_index.flatten(), self.num_entities, "entity"),
            "mention": (self.mention_index[0], self.num_entities, "entity"),
            "mention's chunk": (self.mention_index[1], num_chunks, "chunk"),
            "triple's chunk": (self.triple_chunks.values, num_chunks, "chunk"),
            "description": (_column(self.descriptions, "entity"), self.num_entities, "entity"),
            "description's chunk": (_column(self.descriptions, "chunk"), num_chunks, "chunk"),
        }
        for what, (values, bound, of) in ends.items():
            if len(values) and not 0 <= int(values.min()) <= int(values.max()) < bound:
                outside = int(values.max() if int(values.max()) >= bound else values.min())
                problems.append(f"knowledge graph: a {what} leads to {of} {outside} of {bound}")
        return problems

    def save(self, folder: Path) -> None:
        """Write Parquet tables, a safetensors file and a JSON file into `folder`."""
        folder.mkdir(parents=True, exist_ok=True)
        for name, schema in _TABLES.items():
            table = getattr(self, name)
            write_table(folder / f"{name}.parquet", {c: table[c] for c in schema.names}, schema)
        write_tensors(folder / "vectors.safetensors", {name: getattr(self, field) for name, field in _VECTORS.items()})
        write_json(folder / "dropped.json", self.dropped)

    @classmethod
    def load(cls, folder: Path) -> "KnowledgeGraph":
        """Raises IndexFormatError: a file is missing or torn."""
        tables = {name: read_table(folder / f"{name}.parquet") for name in _TABLES}
        stored = read_tensors(folder / "vectors.safetensors")
        nothing = stored["names"][:0]
        vectors = {field: stored.get(name, nothing) for name, field in _VECTORS.items()}
        return cls(**tables, **vectors, dropped=read_json(folder / "dropped.json"))


def _column(table: pa.Table, name: str) -> Tensor:
    return torch.from_numpy(table[name].to_numpy().copy()).long()
