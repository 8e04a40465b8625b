from dataclasses import asdict
from pathlib import Path

import pytest

from qgrag.config import from_plain, load_yaml
from qgrag.retrieval.methods.dual.retriever import DualConfig
from qgrag.retrieval.methods.ensemble import EnsembleConfig
from qgrag.retrieval.methods.fg.retriever import FGConfig
from qgrag.retrieval.methods.qmkgf.retriever import QMKGFConfig

FOLDER = Path(__file__).resolve().parents[2] / "configs" / "retrieval"


CONFIGS = {"dual": DualConfig, "fg": FGConfig, "qmkgf": QMKGFConfig, "ensemble": EnsembleConfig}


@pytest.mark.parametrize(("name", "config"), CONFIGS.items())
def test_file_shows_every_parameter_at_its_default(name, config):
    values = load_yaml(FOLDER / f"{name}.yaml")
    assert values.pop("retriever") == name
    assert values.keys() == asdict(config()).keys()
    made = from_plain(config, values, where=name)
    assert made == config()


@pytest.mark.parametrize("path", sorted((FOLDER / "ablations").glob("*.yaml")), ids=lambda path: path.stem)
def test_an_ablation_changes_one_parameter(path):
    values = load_yaml(path)
    config = CONFIGS[values.pop("retriever")]
    made, default = asdict(from_plain(config, values, where=str(path))), asdict(config())
    assert [name for name in default if made[name] != default[name]] == list(values)
    assert len(values) == 1
