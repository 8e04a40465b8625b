"""Blocks side by side give what they give one after another."""

import pytest
import torch

from qgrag.graph import Ragged, expand, local_pagerank, shortest_paths
from qgrag.graph.blocks import run_blocks
from tests.graph.conftest import csr_of


def test_answers_come_in_order_and_threads_stay_as_set() -> None:
    torch.set_num_threads(3)
    inside = run_blocks(lambda block: (block, torch.get_num_threads()), range(7), torch.device("cpu"))
    assert inside == [(block, 1) for block in range(7)]
    assert torch.get_num_threads() == 3


def test_an_error_in_a_block_is_raised_and_threads_stay_as_set() -> None:
    torch.set_num_threads(2)
    with pytest.raises(IndexError):
        run_blocks(lambda block: torch.arange(3)[block], [0, 5], torch.device("cpu"))
    assert torch.get_num_threads() == 2


def test_kernels_answer_alike_on_any_number_of_threads() -> None:
    generator = torch.Generator().manual_seed(0)
    edges = [(u, v, 1.0) for u, v in torch.randint(0, 500, (2000, 2), generator=generator).tolist()]
    csr = csr_of(500, edges, torch.device("cpu"))
    seeds = Ragged.from_lists(torch.randint(0, 500, (40, 4), generator=generator).tolist())
    table = torch.randint(0, 500, (500, 3), generator=generator)
    answers, scores = [], []
    for threads in (1, 3):
        torch.set_num_threads(threads)
        paths, found = shortest_paths(csr, seeds), expand(table, seeds, 3)
        answers.append((paths.nodes.values, paths.edges.values, found.nodes.values, found.hop))
        local = local_pagerank(csr, seeds, dtype=torch.float64)
        scores.append(torch.zeros(40, 500, dtype=torch.float64))
        scores[-1][local.nodes.batch(), local.nodes.values] = local.scores
    for one, other in zip(*answers, strict=True):
        assert torch.equal(one, other)
    assert (scores[0] - scores[1]).abs().sum(1).max() < 1e-2
