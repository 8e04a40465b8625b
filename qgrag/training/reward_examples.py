"""Training data of a reward model: subgraphs of a question with how much each helped."""

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from qgrag.files import write_json_lines
from qgrag.training.json_lines import read_lines, text_field, texts_field


@dataclass(frozen=True, slots=True)
class LabelledSubgraph:
    """One candidate.

    Args:
        name: how it was built, such as `one_hop`.
        triples: texts `head relation tail`, at least one.
        reward: how much it helps, from 0 to 1.
    """

    name: str
    triples: tuple[str, ...]
    reward: float

    @classmethod
    def from_plain(cls, row: Any) -> "LabelledSubgraph":
        if not isinstance(row, dict):
            raise ValueError(f'"subgraphs" has to be a list of objects, not of {type(row).__name__}')
        reward = row.get("reward")
        if isinstance(reward, bool) or not isinstance(reward, int | float) or not math.isfinite(reward):
            raise ValueError(f'"reward" has to be a finite number, not {reward!r}')
        if not 0 <= reward <= 1:
            raise ValueError(f'"reward" has to lie in 0 to 1, not {reward}')
        return cls(text_field(row, "name"), texts_field(row, "triples", least=1), float(reward))


@dataclass(frozen=True, slots=True)
class RewardExample:
    """One line of a reward file: `{"query": ..., "subgraphs": [{"name", "triples", "reward"}, ...]}`.

    Args:
        query: a question.
        subgraphs: its candidates, at least two.
        group: what a split must not tear apart.
    """

    query: str
    subgraphs: tuple[LabelledSubgraph, ...]
    group: str = ""

    @classmethod
    def from_plain(cls, row: dict[str, Any]) -> "RewardExample":
        """From a line's object; ValueError says what is wrong."""
        subgraphs = row.get("subgraphs")
        if not isinstance(subgraphs, list) or len(subgraphs) < 2:
            raise ValueError('"subgraphs" has to be a list of at least two, or there is nothing to choose among')
        group = row.get("group", "")
        if not isinstance(group, str):
            raise ValueError(f'"group" has to be a text, not {group!r}')
        return cls(text_field(row, "query"), tuple(map(LabelledSubgraph.from_plain, subgraphs)), group)

    def to_plain(self) -> dict[str, Any]:
        subgraphs = [{"name": s.name, "triples": list(s.triples), "reward": s.reward} for s in self.subgraphs]
        row: dict[str, Any] = {"query": self.query, "subgraphs": subgraphs}
        return row | ({"group": self.group} if self.group else {})

    @property
    def informative(self) -> bool:
        """Whether the choice among the candidates matters."""
        rewards = [s.reward for s in self.subgraphs]
        return max(rewards) > min(rewards)


def best_shares(examples: Iterable[RewardExample]) -> dict[str, float]:
    """How often each kind of subgraph is the most useful, among the informative examples; equals share.

    The largest share is what always choosing that kind comes to.
    """
    counts: Counter[str] = Counter()
    total = 0
    for example in examples:
        if example.informative:
            total += 1
            top = max(s.reward for s in example.subgraphs)
            best = [s.name for s in example.subgraphs if s.reward == top]
            counts.update({name: 1 / len(best) for name in best})
    return {name: count / total for name, count in counts.most_common()}


def read_rewards(path: str | Path) -> list[RewardExample]:
    """All examples of a file.

    Raises:
        InputError: names the file, the line and what is wrong with it.
    """
    return read_lines(Path(path), RewardExample.from_plain)


def write_rewards(path: str | Path, examples: Iterable[RewardExample]) -> int:
    """Write a reward file; returns the number of examples."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    return write_json_lines(path, (example.to_plain() for example in examples))
