"""The evidence model: padding, order, seeing the other candidates, texts, and its files."""

from pathlib import Path

import pytest
import torch

from qgrag.errors import ConfigError, ModelNotFoundError
from qgrag.models.evidence import EvidenceConfig, EvidenceInputs, EvidenceModel
from qgrag.models.evidence_checkpoint import EvidenceCheckpoint, read_evidence_model, write_evidence_model

B, K, F, G, P, L, N, D = 3, 7, 5, 4, 2, 6, 3, 16
FEATURES = tuple("abcde")


def model(text: str = "none", layers: int = 2) -> EvidenceModel:
    torch.manual_seed(0)
    shape = {"dimension": D, "heads": 2, "head_width": 4, "width": 8, "pool_heads": 2, "layers": layers}
    return EvidenceModel(EvidenceConfig(F, G, P, text=text, **shape)).eval()


def inputs(text: bool = False) -> EvidenceInputs:
    chance = torch.Generator().manual_seed(1)

    def numbers(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=chance)

    mask = torch.arange(K) < torch.tensor([[7], [4], [1]])
    made = EvidenceInputs(numbers(B, K, F), numbers(B, K, K, P), numbers(B, G), mask)
    if not text:
        return made
    token_mask, item_mask = torch.ones(B, L, dtype=torch.bool), torch.ones(B, K, N, dtype=torch.bool)
    item_mask[0, 0, 1:] = False
    return made.with_text(numbers(B, L, D), token_mask, numbers(B, K, N, D), item_mask)


@pytest.mark.parametrize("text", [False, True])
def test_padding_has_no_part(text: bool) -> None:
    own, given = model("attention" if text else "none"), inputs(text)
    scores = own(given)
    assert scores.shape == (B, K)
    assert torch.equal(scores == -torch.inf, ~given.mask)
    other = given.candidate.masked_fill(~given.mask.unsqueeze(-1), 99.0)
    torch.testing.assert_close(own(given.with_candidate(other)), scores)
    alone = EvidenceInputs(*(value if value is None else value[1:2] for value in given))
    torch.testing.assert_close(own(alone)[0], scores[1], rtol=1e-4, atol=1e-5)


def test_the_order_of_candidates_does_not_matter() -> None:
    own, given = model("attention"), inputs(text=True)
    order = torch.tensor([3, 1, 0, 2, 6, 5, 4])
    turned = given._replace(
        candidate=given.candidate[:, order],
        pair=given.pair[:, order][:, :, order],
        mask=given.mask[:, order],
        items=given.items[:, order],
        item_mask=given.item_mask[:, order],
    )
    torch.testing.assert_close(own(turned), own(given)[:, order], rtol=1e-4, atol=1e-5)


def test_a_candidate_is_scored_beside_the_others_by_layers_alone() -> None:
    given = inputs()
    other = given.candidate.clone()
    other[0, 0] += 3
    for layers, changes in ((2, True), (0, False)):
        own = model(layers=layers)
        moved = (own(given.with_candidate(other)) - own(given))[0, 1:].abs().max() > 1e-6
        assert bool(moved) == changes


def test_what_a_checkpoint_holds_comes_back(tmp_path: Path) -> None:
    own = model()
    write_evidence_model(tmp_path / "m", EvidenceCheckpoint(own, ("bm25", "naive"), FEATURES, 20, 64))
    read = read_evidence_model(tmp_path / "m")
    assert (read.members, read.features, read.depth, read.size) == (("bm25", "naive"), FEATURES, 20, 64)
    torch.testing.assert_close(read.model(inputs()), own(inputs()))


def test_what_is_no_evidence_model_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelNotFoundError, match="no evidence model"):
        read_evidence_model(tmp_path)
    write_evidence_model(tmp_path, EvidenceCheckpoint(model(), ("bm25",), FEATURES, 20, 64))
    described = (tmp_path / "evidence.json").read_text()
    for broken in (
        "{",
        "[]",
        described.replace('"depth": 20', '"depth": "deep"'),
        described.replace('"width": 8', '"width": 9'),
    ):
        (tmp_path / "evidence.json").write_text(broken)
        with pytest.raises(ConfigError, match="evidence"):
            read_evidence_model(tmp_path)
