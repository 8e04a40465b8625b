"""Training pairs from questions with gold, or from the pairs that an index holds already."""

import random
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from qgrag.errors import InputError
from qgrag.index.reader import Index
from qgrag.training.mining import MiningConfig, mine_hard_negatives
from qgrag.training.pairs import TrainingPair


@dataclass(frozen=True, slots=True)
class GoldQuestion:
    """A question and the documents that answer it.

    Args:
        text: the question.
        documents: ids of the documents, at least one.
    """

    text: str
    documents: tuple[str, ...]


def pairs_of_questions(
    questions: Sequence[GoldQuestion], index: Index, groups: Mapping[str, str]
) -> list[TrainingPair]:
    """A pair a question: of each gold document the chunk that is nearest to the question.

    Args:
        questions: with gold that is in the index.
        index: holds the documents.
        groups: group of each document, by any of its ids.

    Raises:
        InputError: a question has no gold, or gold that the index does not hold.
    """
    rows_of = _rows_by_document(index)
    vectors = index.embedder.encode_queries([question.text for question in questions])
    joined = question_groups(questions, groups)
    pairs = []
    for question, q, group in zip(questions, vectors, joined):
        check_gold(question, rows_of)
        rows = [_nearest(q, index, rows_of[name]) for name in question.documents]
        chunks = [index.chunks[row] for row in rows]
        pairs.append(
            TrainingPair(
                question.text,
                tuple(chunk.passage for chunk in chunks),
                pos_ids=tuple(chunk.document_id for chunk in chunks),
                group=group,
            )
        )
    return pairs


def pairs_of_index(index: Index, groups: Mapping[str, str]) -> list[TrainingPair]:
    """The index's own question-answer nodes as pairs of the question and its chunk: no labels are needed.

    Pairs that Doc2Query-- filtered out, and bare sentences, are left out.

    Raises:
        MissingComponentError: the index was built without its query graph.
        InputError: its graph holds no question.
    """
    pairs = []
    seen = set()
    for row in index.query_graph.pairs.select(["chunk", "node", "question"]).to_pylist():
        if row["node"] >= 0 and row["question"] and (row["question"], row["chunk"]) not in seen:
            seen.add((row["question"], row["chunk"]))
            chunk = index.chunks[row["chunk"]]
            group = groups[chunk.document_id]
            pairs.append(TrainingPair(row["question"], (chunk.passage,), (), (chunk.document_id,), (), group))
    if not pairs:
        raise InputError(f"{index.path}: its query graph holds no question, only sentences")
    return pairs


def questions_of_pairs(pairs: Sequence[TrainingPair]) -> list[GoldQuestion]:
    """Pairs as questions whose gold is the documents of what answers them."""
    return [GoldQuestion(pair.query, pair.pos_ids) for pair in pairs]


def with_hard_negatives(
    pairs: Sequence[TrainingPair], index: Index, config: MiningConfig, usable: Tensor | None = None
) -> list[TrainingPair]:
    """The same pairs with negatives mined from the index (see `mine_hard_negatives`)."""
    rows_of: dict[str, list[int]] = {}
    for row, chunk in enumerate(index.chunks):
        rows_of.setdefault(chunk.passage, []).append(row)
    positives = [[row for text in pair.pos for row in rows_of[text]] for pair in pairs]
    q = index.embedder.encode_queries([pair.query for pair in pairs])
    mined = mine_hard_negatives(q, index.passages, positives, document_numbers(index), config, usable)
    return [_with_negatives(pair, index, rows) for pair, rows in zip(pairs, mined)]


def with_random_negatives(
    pairs: Sequence[TrainingPair], index: Index, count: int, seed: int, usable: Tensor | None = None
) -> list[TrainingPair]:
    """The same pairs with up to `count` chunks of other documents each (the paper's way), fixed by seed; of those
    that are `usable`, bool [N], where given."""
    chance = random.Random(seed)
    document = [chunk.document_id for chunk in index.chunks]
    rows = range(len(document)) if usable is None else usable.nonzero().flatten().tolist()
    out = []
    for pair in pairs:
        drawn = dict.fromkeys(chance.choice(rows) for _ in range(4 * count))
        out.append(_with_negatives(pair, index, [r for r in drawn if document[r] not in pair.pos_ids][:count]))
    return out


def usable_negatives(
    parts: Sequence[Sequence[TrainingPair]], index: Index, groups: Mapping[str, str]
) -> Iterator[Tensor]:
    """For each part of a split the chunks that may be its negatives, bool [N]: those of no group that another part
    is asked about, so that no document of one part is read while training on another.

    Args:
        parts: pairs, each group whole in one part.
        index: of which the pairs were made.
        groups: group of each document, by any of its ids.
    """
    part_of = {groups[name]: number for number, part in enumerate(parts) for pair in part for name in pair.pos_ids}
    owner = torch.tensor([part_of.get(groups[chunk.document_id], -1) for chunk in index.chunks])
    for number in range(len(parts)):
        yield (owner == number) | (owner < 0)


def document_numbers(index: Index) -> Tensor:
    """The document of each chunk as a number, int64 [N]."""
    numbers: dict[str, int] = {}
    return torch.tensor([numbers.setdefault(chunk.document_id, len(numbers)) for chunk in index.chunks])


def document_groups(index: Index, by: str) -> dict[str, str]:
    """Group of each document, by each of its ids: the document itself, or its title (`by` is `title`)."""
    groups = {}
    for document in index.documents.unique:
        groups[document.id] = (document.title or document.id) if by == "title" else document.id
    for row, ids in index.documents.aliases.items():
        groups |= dict.fromkeys(ids, groups[index.documents.documents[row].id])
    return groups


def _rows_by_document(index: Index) -> dict[str, list[int]]:
    rows: dict[str, list[int]] = {}
    for row, ids in enumerate(index.document_ids):
        for name in ids:
            rows.setdefault(name, []).append(row)
    return rows


def _nearest(q: Tensor, index: Index, rows: Sequence[int]) -> int:
    return rows[int((index.passages.vectors[torch.tensor(rows)].cpu() @ q).argmax())]


def _with_negatives(pair: TrainingPair, index: Index, rows: Sequence[int]) -> TrainingPair:
    chunks = [index.chunks[row] for row in rows]
    texts, ids = tuple(chunk.passage for chunk in chunks), tuple(chunk.document_id for chunk in chunks)
    return replace(pair, neg=texts, neg_ids=ids)


def question_groups(questions: Sequence[GoldQuestion], groups: Mapping[str, str]) -> list[str]:
    """One group a question: questions whose documents share a group, directly or over others, get the same.

    Args:
        questions: with gold.
        groups: group of each document, by any of its ids.

    Raises:
        InputError: a question has no gold, or gold that has no group.
    """
    parent: dict[str, str] = {}

    def root(name: str) -> str:
        parent.setdefault(name, name)
        while parent[name] != name:
            parent[name] = parent[parent[name]]
            name = parent[name]
        return name

    for question in questions:
        check_gold(question, groups)
        first, *rest = (groups[name] for name in question.documents)
        for name in rest:
            a, b = sorted((root(first), root(name)))
            parent[b] = a
    return [root(groups[question.documents[0]]) for question in questions]


def check_gold(question: GoldQuestion, known: Collection[str]) -> None:
    """Raise InputError unless the question has gold documents and all of them are known."""
    missing = [name for name in question.documents if name not in known]
    if missing or not question.documents:
        what = f"document {missing[0]!r}, which the index lacks" if missing else "no gold document"
        raise InputError(f"question {question.text!r} has {what}")


def sampled(questions: Sequence[GoldQuestion], count: int, seed: int) -> list[GoldQuestion]:
    """`count` of the questions, drawn by seed, or all of them in their order."""
    return random.Random(seed).sample(questions, count) if len(questions) > count else list(questions)
