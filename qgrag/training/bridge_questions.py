"""Questions that take two documents to answer, made of an index's own questions and triples: no labels are needed."""

import random
import re
from collections.abc import Sequence

from qgrag.errors import InputError
from qgrag.extraction.facts.local_facts import MENTIONS, MENTIONS_CJK
from qgrag.extraction.spacy_pipeline import is_cjk
from qgrag.index.reader import Index
from qgrag.names.titles import base_name
from qgrag.training.gold_pairs import GoldQuestion
from qgrag.training.pairs import TrainingPair


def bridge_questions(index: Index, pairs: Sequence[TrainingPair], seed: int, per_bridge: int = 4) -> list[GoldQuestion]:
    """Own questions of an index in which a name is replaced by how another document leads to it.

    A triple (A, r, B) of the document titled A, where B is the title of another document, makes a bridge: each question
    about B that names it becomes one about "the one that A r", as in "When was the one that The Last Coupon directed by
    born?". That is clumsy English, but an encoder reads it as it reads a question of two hops. Gold are both documents.
    Bare mentions make no bridge, and each document is on one bridge at most, so that a split by document keeps nearly
    all of the corpus apart.

    Args:
        index: with a knowledge graph whose entities hold document titles.
        pairs: the index's own questions with the documents that answer them, such as `pairs_of_index`.
        seed: which bridges are taken, where a document has several.
        per_bridge: questions of one bridge, at most.

    Raises:
        MissingComponentError: the index was built without a knowledge graph.
        InputError: no triple leads from one titled document to another about which there is a question.
    """
    graph, chunks = index.knowledge_graph, index.chunks
    titled = graph.mentions.filter(graph.mentions["titled"])
    about = {
        chunks[chunk].document_id: entity
        for chunk, entity in zip(titled["chunk"].to_pylist(), titled["entity"].to_pylist(), strict=True)
    }
    names = [base_name(name) for name in graph.names]
    asked: dict[str, list[str]] = {}
    for pair in pairs:
        for document in pair.pos_ids:
            if document in about and _says(pair.query, names[about[document]]):
                asked.setdefault(document, []).append(pair.query)
    target_of = {about[document]: document for document in asked}
    bridges = [
        (document, relation, target_of[b], leads)
        for head, tail, relation, rows in zip(
            *graph.edge_index.tolist(), graph.relations, graph.triples["chunks"].to_pylist(), strict=True
        )
        if relation not in (MENTIONS, MENTIONS_CJK)
        for a, b, leads in ((head, tail, True), (tail, head, False))
        if b in target_of and a != b
        for document in dict.fromkeys(chunks[row].document_id for row in rows)
        if about.get(document) == a and document != target_of[b]
    ]
    chance = random.Random(seed)
    chance.shuffle(bridges)
    used: set[str] = set()
    questions = []
    for source, relation, target, leads in bridges:
        a, b = names[about[source]], names[about[target]]
        told = [q for q in asked[target] if a not in q]
        if told and a not in b and b not in a and used.isdisjoint((source, target)):
            used |= {source, target}
            told = chance.sample(told, min(per_bridge, len(told)))
            phrase = _phrase(a, relation, leads).replace("\\", r"\\")
            questions += [GoldQuestion(_named(b).sub(phrase, q), (source, target)) for q in told]
    if not questions:
        raise InputError(
            f"{index.path}: no statement leads from one titled document to another that a question is about; bridge "
            "questions need documents with titles that name what they tell of"
        )
    return questions


def _says(query: str, name: str) -> bool:
    return name in query and bool(_named(name).search(query))


def _named(name: str) -> re.Pattern[str]:
    """A name as a whole with its article, not 'Ald' in 'Aldous'; Chinese has no space between words."""
    pattern = re.escape(name)
    return re.compile(pattern if is_cjk(name) else rf"(?<!\w)(?:[Tt]he )?{pattern}(?!\w)")


def _phrase(name: str, relation: str, leads: bool) -> str:
    """What stands for the other end of a triple."""
    if is_cjk(name):
        return f"{name}{relation}的那一个" if leads else f"{relation}{name}的那一个"
    return f"the one that {name} {relation}" if leads else f"the one that {relation} {name}"
