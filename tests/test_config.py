from dataclasses import dataclass, field

import pytest

from qgrag.config import from_plain, load_yaml
from qgrag.errors import ConfigError


@dataclass(frozen=True)
class Inner:
    """Args: alpha: a share."""

    alpha: float = 0.8

    def __post_init__(self) -> None:
        if self.alpha > 1:
            raise ConfigError(f"alpha must be at most 1, not {self.alpha}")


@dataclass(frozen=True)
class Outer:
    """Args: size: a number. inner: a part. maybe: a part or null."""

    size: int = 3
    inner: Inner = field(default_factory=Inner)
    maybe: Inner | None = None


def test_missing_keys_keep_their_defaults_and_nested_ones_are_filled():
    assert from_plain(Outer, {"inner": {"alpha": 0.5}}, where="x") == Outer(inner=Inner(0.5))
    assert from_plain(Outer, {"maybe": {"alpha": 0.1}}, where="x").maybe == Inner(0.1)
    assert from_plain(Outer, {"maybe": None}, where="x").maybe is None


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"sice": 4}, r"x\.yaml: key 'sice' is unknown; did you mean 'size'\?"),
        ({"inner": {"alhpa": 1}}, r"'inner.alhpa' is unknown; did you mean 'inner.alpha'"),
        ({"maybe": {"alhpa": 1}}, r"'maybe.alhpa' is unknown; did you mean 'maybe.alpha'"),
        ({"size": "many"}, r"x\.yaml: .*size"),
        ({"inner": {"alpha": 2}}, r"x\.yaml: .*at most 1"),
    ],
)
def test_wrong_keys_and_values_are_named(values, message):
    with pytest.raises(ConfigError, match=message):
        from_plain(Outer, values, where="x.yaml")


@pytest.mark.parametrize("text", ["- a\n- b\n", "a: [1\n", "just words"])
def test_yaml_that_is_no_mapping_is_named(tmp_path, text):
    path = tmp_path / "c.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=r"c\.yaml"):
        load_yaml(path)


def test_missing_yaml_is_named(tmp_path):
    with pytest.raises(ConfigError, match=r"none\.yaml: cannot be read"):
        load_yaml(tmp_path / "none.yaml")
