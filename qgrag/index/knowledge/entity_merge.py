"""Joining names that the normal form keeps apart: a bracketed title's short form, and, if asked for, near spellings."""

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from qgrag.errors import ConfigError
from qgrag.graph import knn_graph
from qgrag.names.forms import without_spaces
from qgrag.names.keys import EntityNames, compatible_types, distinct_numbers
from qgrag.names.vocabulary import VALUE_TYPES

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class EntityMergeConfig:
    """When two names are one entity.

    Args:
        brackets: a plain name becomes the only title that is that name with a bracket, of the same type or of
            an unknown one: 'George Pearson' is 'George Pearson (filmmaker)' while no other bearer has a
            title.
        similarity: least cosine of two names' vectors at which they are joined; null joins none.
        neighbours: how many of a name's nearest others are looked at.
        apart: pairs of names that are never joined, in either order; put a pair here to undo a merge.
    """

    brackets: bool = True
    similarity: float | None = None
    neighbours: int = 10
    apart: tuple[tuple[str, str], ...] = ()

    def __post_init__(self) -> None:
        if self.similarity is not None and not 0 < self.similarity <= 1:
            raise ConfigError(f"merge.similarity is a cosine above 0 and at most 1, not {self.similarity}")
        if self.neighbours < 1:
            raise ConfigError(f"merge.neighbours must be at least 1, not {self.neighbours}")
        if unnamed := [pair for pair in self.apart if len(pair) != 2 or not all(map(without_spaces, pair))]:
            raise ConfigError(f"merge.apart must hold pairs of names, not {list(unnamed[0])}")

    def are_apart(self, one: str, other: str) -> bool:
        """Whether the user keeps two keys apart."""
        return any({without_spaces(a), without_spaces(b)} == {one, other} for a, b in self.apart)


@dataclass(frozen=True, slots=True)
class Merge:
    """A proposed merge: what stays, what goes into it, why, and what forbids it (empty: it is done)."""

    kept: str
    merged: str
    rule: str
    similarity: float
    refused: str = ""


def bracket_merges(names: EntityNames, config: EntityMergeConfig) -> list[Merge]:
    """A plain name with exactly one bracketed title; see `EntityMergeConfig.brackets`."""
    proposals = []
    for plain, bearers in names.bearers().items() if config.brackets else ():
        if plain not in names.by_key or names.by_key[plain].titles:
            continue
        name = names.by_key[plain]
        for key in bearers:
            bearer, refused = names.by_key[key], ""
            if len(bearers) > 1:
                refused = f"{len(bearers)} titles bear this name"
            elif not compatible_types(name.type, bearer.type):
                refused = f"{name.type} is not {bearer.type}"
            elif name.type == "PERSON" and " " not in name.canonical.strip():
                refused = "a first name or surname alone has many bearers"
            elif config.are_apart(plain, key):
                refused = "kept apart by the configuration"
            proposals.append(Merge(key, plain, "bracket", 1.0, refused))
    return proposals


def similar_merges(names: EntityNames, vectors: Tensor, config: EntityMergeConfig) -> list[Merge]:
    """Pairs of near spellings, most similar first, and what becomes of each.

    Groups grow by complete linkage (Defays 1977): a name joins a group only if it is near enough to every
    member, so a chain of near matches never joins its ends. Names of different known types, with different
    numbers or brackets, with titles of their own, values, and pairs kept apart by the configuration are
    refused. The longer
    history stays: a title before a plain name, then the more frequent one, then the alphabet.

    Args:
        names: the names so far.
        vectors: float32 [N, d], unit vectors of the canonical names of `sorted(names.by_key)`.
        config: threshold and exceptions.

    Returns:
        Every pair at or above the threshold that `config.neighbours` sees. Nothing is joined yet: see
        `apply_merges`.
    """
    if config.similarity is None or len(vectors) < 2:
        return []
    keys = sorted(names.by_key)
    groups: dict[int, list[int]] = {row: [row] for row in range(len(keys))}
    group_of = list(range(len(keys)))
    proposals = []
    for similarity, one, other in _near_pairs(vectors, config.similarity, config.neighbours):
        kept, merged = _by_standing(names, keys, one, other)
        refused = _refusal(names, keys[kept], keys[merged], config)
        if not refused:
            rows = [(a, b) for a in groups[group_of[kept]] for b in groups[group_of[merged]]]
            refused = _chain(rows, vectors, keys, names, config) if group_of[kept] != group_of[merged] else ""
        if not refused and group_of[kept] != group_of[merged]:
            absorbed = groups.pop(group_of[merged])
            groups[group_of[kept]] += absorbed
            for row in absorbed:
                group_of[row] = group_of[kept]
        proposals.append(Merge(keys[kept], keys[merged], "similar", similarity, refused))
    return proposals


def apply_merges(names: EntityNames, proposals: Iterable[Merge]) -> list[Merge]:
    """Join what is not refused; returns the merges done, by the names as they were shown before."""
    done = []
    for merge in proposals:
        kept, merged = names.resolve(merge.kept), names.resolve(merge.merged)
        if merge.refused or kept == merged:
            continue
        shown = names.by_key[kept].canonical, names.by_key[merged].canonical
        names.join(kept, merged)
        done.append(Merge(*shown, merge.rule, merge.similarity))
    return done


def report_merges(done: Sequence[Merge], proposals: Sequence[Merge], config: EntityMergeConfig, total: int) -> str:
    """'merged 3 of 120 names', or 'merged 0 of 120 names' with the reason."""
    text = f"merged {len(done)} of {total} names"
    if done:
        return text
    if config.similarity is None and not config.brackets:
        return f"{text}: both kinds of merging are switched off"
    if not proposals:
        return f"{text}: no two names are near enough"
    reasons = sorted({merge.refused for merge in proposals if merge.refused})
    return f"{text}: all {len(proposals)} candidates were refused ({'; '.join(reasons[:3])})"


def _near_pairs(vectors: Tensor, least: float, neighbours: int) -> list[tuple[float, int, int]]:
    graph = knn_graph(vectors, min(neighbours, len(vectors) - 1))
    near = (graph.score >= least) & (graph.index >= 0)
    rows, columns = near.nonzero(as_tuple=True)
    others = graph.index[rows, columns]
    pairs = torch.stack([torch.minimum(rows, others), torch.maximum(rows, others)])
    pairs = torch.unique(pairs, dim=1)
    scores = (vectors[pairs[0]] * vectors[pairs[1]]).sum(1)
    listed = zip(scores.tolist(), pairs[0].tolist(), pairs[1].tolist(), strict=True)
    return sorted(listed, key=lambda pair: (-pair[0], pair[1], pair[2]))


def _by_standing(names: EntityNames, keys: list[str], one: int, other: int) -> tuple[int, int]:
    def standing(row: int) -> tuple[bool, int, str]:
        name = names.by_key[keys[row]]
        return not name.titles, -name.surfaces.total(), keys[row]

    return (one, other) if standing(one) <= standing(other) else (other, one)


def _refusal(names: EntityNames, kept: str, merged: str, config: EntityMergeConfig) -> str:
    one, other = names.by_key[kept], names.by_key[merged]
    if config.are_apart(kept, merged):
        return "kept apart by the configuration"
    if one.type in VALUE_TYPES or other.type in VALUE_TYPES:
        return "values are no names"
    if one.titles and other.titles:
        return "both are titles"
    if not compatible_types(one.type, other.type):
        return f"{one.type} is not {other.type}"
    if distinct_numbers(one.canonical, other.canonical):
        return "numbers or brackets differ"
    return ""


def _chain(
    rows: list[tuple[int, int]], vectors: Tensor, keys: list[str], names: EntityNames, config: EntityMergeConfig
) -> str:
    """Why two groups may not become one: a pair across them that is not near enough, or may not be joined."""
    for a, b in rows:
        if float(vectors[a] @ vectors[b]) < (config.similarity or 1.0):
            return "would chain names that are not near each other"
        if reason := _refusal(names, keys[a], keys[b], config):
            return reason
    return ""
