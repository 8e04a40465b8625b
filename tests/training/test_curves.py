import pytest

from qgrag.errors import InputError
from qgrag.training.curves import plot_curves, read_curves


def test_curves_of_a_resumed_run_are_joined(tmp_path):
    for version, rows in {0: "0,1,0.9,\n0,2,0.8,\n0,2,,0.5\n", 1: "0,2,0.7,\n1,3,0.6,\n", 10: "2,4,0.5,0.6\n"}.items():
        folder = tmp_path / "logs" / f"version_{version}"
        folder.mkdir(parents=True)
        (folder / "metrics.csv").write_text("epoch,step,train/loss,val/mrr@10\n" + rows)
    curves = read_curves(tmp_path)
    assert curves == {"train/loss": ([1, 2, 3, 4], [0.9, 0.7, 0.6, 0.5]), "val/mrr@10": ([2, 4], [0.5, 0.6])}
    plot_curves(curves, tmp_path / "img" / "curves.png", ["val/mrr@10", "val/none"])
    assert (tmp_path / "img" / "curves.png").read_bytes().startswith(b"\x89PNG")


def test_no_logs(tmp_path):
    with pytest.raises(InputError, match="no training run"):
        read_curves(tmp_path)
