"""Retrieval metrics of one question, at the level of documents.

A ranking is a list of hits (chunks), and `k` counts hits, as the papers' top K counts chunks. A document has the rank
of its first chunk; its further chunks take up places but add nothing. The values come from torchmetrics, whose
definitions assume two things that this module supplies. Scores are positive and without ties, because recall, precision
and MRR take every item with a score of 0 or less for irrelevant. Gold that was not retrieved is part of the input,
because recall and nDCG otherwise know only the gold that was retrieved.
"""

from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from qgrag.errors import InputError

if TYPE_CHECKING:
    from torch import Tensor

DEFAULT_KS = (1, 2, 5, 8, 10)
GOLD, OTHER, REPEATED = range(3)
MEASURES = ("recall", "all_evidence", "mrr", "ndcg", "hit", "precision", "f1")


def metric_names(ks: Sequence[int]) -> list[str]:
    """`recall@1`, `recall@2`, ... for each measure, in the order of `MEASURES`."""
    return [f"{measure}@{k}" for measure in MEASURES for k in ks]


def check_ks(ks: Sequence[int]) -> tuple[int, ...]:
    """The cut-offs in rising order, without repeats.

    Raises:
        InputError: there are none, or one is below 1.
    """
    if not ks or min(ks) < 1:
        raise InputError(f"cut-offs k have to be whole numbers from 1, not {list(ks)}")
    return tuple(sorted(set(ks)))


def retrieval_metrics(
    ranking: Sequence[Sequence[str]], gold: Collection[str | Collection[str]], ks: Sequence[int] = DEFAULT_KS
) -> dict[str, float]:
    """Every measure at every cut-off for one question.

    - `recall@k`: share of the gold documents among the first k hits.
    - `all_evidence@k`: 1 if all of them are there, else 0.
    - `hit@k`: 1 if any is there, else 0.
    - `mrr@k`: 1 / rank of the first gold document, 0 if it is below k.
    - `ndcg@k`: binary gains, discount log2(1 + rank); the ideal ranking has the gold documents on top.
    - `precision@k`: share of gold among the distinct documents of the first k hits.
    - `f1@k`: harmonic mean of `precision@k` and `recall@k`.

    Args:
        ranking: per hit, best first, every id of its document (one, or several where documents repeat), the
            first of which is the same for all hits of the document.
        gold: what holds the evidence, at least one: ids of documents, or groups of ids where any one of a group is
            enough. A group counts as one document: its first hit is gold, and its further hits add nothing. No two
            entries share a document.
        ks: cut-offs.

    Returns:
        Values from 0 to 1 by name, as `metric_names(ks)` lists them.

    Raises:
        InputError: `gold` is empty, or a cut-off is below 1.

    Example:
        >>> values = retrieval_metrics([["a"], ["b"], ["b"], ["c"]], {"b", "c"}, ks=[2, 4])
        >>> values["recall@2"], values["all_evidence@4"], values["mrr@4"]
        (0.5, 1.0, 0.5)
    """
    ks = check_ks(ks)
    if not gold:
        raise InputError("a question without gold documents has no retrieval metrics; leave it out")
    groups = {id_: number for number, ids in enumerate(gold) for id_ in ([ids] if isinstance(ids, str) else ids)}
    places = _places(ranking[: ks[-1]], groups)
    return dict(_measure(places, len(gold) - places.count(GOLD), ks))


def _places(ranking: Sequence[Sequence[str]], groups: Mapping[str, int]) -> tuple[int, ...]:
    """What each hit is: the first of its document or group, gold or not, or a further one.

    Args:
        ranking: as in `retrieval_metrics`.
        groups: number of the gold entry of each gold id.
    """
    seen: set[str | int] = set()
    places = []
    for ids in ranking:
        group = next((groups[id_] for id_ in ids if id_ in groups), None)
        document = ids[0] if group is None else group
        places.append(REPEATED if document in seen else OTHER if group is None else GOLD)
        seen.add(document)
    return tuple(places)


@lru_cache(maxsize=1 << 16)
def _measure(places: tuple[int, ...], missing: int, ks: tuple[int, ...]) -> dict[str, float]:
    """The metrics of a ranking that lacks `missing` gold documents; few patterns serve many questions."""
    import torch
    from torchmetrics.functional.retrieval import (
        retrieval_normalized_dcg,
        retrieval_precision,
        retrieval_recall,
        retrieval_reciprocal_rank,
    )

    depth = ks[-1]
    relevant = torch.zeros(depth + missing, dtype=torch.bool)
    relevant[: len(places)] = torch.tensor(places) == GOLD
    relevant[depth:] = True
    scores = _descending(depth + missing)
    values: dict[str, float] = {}
    for k in ks:
        documents = torch.tensor([place == GOLD for place in places[:k] if place != REPEATED])
        distinct = _descending(len(documents))
        precision = retrieval_precision(distinct, documents, top_k=k, adaptive_k=True).item() if places else 0.0
        recall = retrieval_recall(scores, relevant, top_k=k).item()
        values[f"recall@{k}"] = recall
        values[f"all_evidence@{k}"] = float(recall == 1.0)
        values[f"mrr@{k}"] = retrieval_reciprocal_rank(scores, relevant, top_k=k).item()
        values[f"ndcg@{k}"] = retrieval_normalized_dcg(scores, relevant, top_k=k).item()
        values[f"hit@{k}"] = float(recall > 0)
        values[f"precision@{k}"] = precision
        values[f"f1@{k}"] = 2 * precision * recall / (precision + recall) if recall else 0.0
    return {name: values[name] for name in metric_names(ks)}


def _descending(n: int) -> "Tensor":
    """n distinct positive scores that fall with the rank, [n]."""
    import torch

    return 1.0 / torch.arange(1, n + 1)
