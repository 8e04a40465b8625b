from pathlib import Path

import pytest

from qgrag.config import from_plain, load_yaml
from qgrag.index.config import IndexConfig
from qgrag.retrieval.registry import load_retriever
from tests.retrieval.cross_encoders import write_cross_encoder

CONFIGS = Path(__file__).resolve().parent.parent / "configs"


def test_local_yaml_is_the_default():
    path = CONFIGS / "index" / "local.yaml"
    assert from_plain(IndexConfig, load_yaml(path), where=str(path)) == IndexConfig()


@pytest.mark.parametrize("path", sorted((CONFIGS / "index").glob("*.yaml")), ids=lambda path: path.stem)
def test_every_index_configuration_is_valid(path):
    from_plain(IndexConfig, load_yaml(path), where=str(path))


@pytest.mark.parametrize("path", sorted((CONFIGS / "retrieval").glob("*.yaml")), ids=lambda path: path.stem)
def test_every_retrieval_configuration_makes_a_retriever(path, demo_index, tmp_path):
    parameters = {}
    if "cross_encoder" in load_yaml(path):
        parameters["cross_encoder"] = {"model": str(write_cross_encoder(tmp_path))}
    result = load_retriever(demo_index, str(path), **parameters).retrieve(["Who composed the music?"], top_k=2)
    assert len(result) == 1
