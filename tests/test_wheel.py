import shutil
import subprocess
import sys
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.mark.slow
def test_an_installed_wheel_works_without_the_repository(tmp_path, demo_documents):
    """Build the wheel, install it with its dependencies into an empty environment, and use it from elsewhere."""
    source = tmp_path / "source"
    shutil.copytree(ROOT, source, ignore=left_out)
    run(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "-w", tmp_path / "dist", source)
    (wheel,) = (tmp_path / "dist").glob("qgrag-*.whl")

    venv.create(tmp_path / "env", with_pip=True)
    binaries = tmp_path / "env" / "bin"
    constraints = ["-c", ROOT / "constraints.txt"]
    run(binaries / "pip", "install", "--quiet", *constraints, "torch")
    run(binaries / "pip", "install", "--quiet", *constraints, f"{wheel}[offline]")

    notes = tmp_path / "notes"
    notes.mkdir()
    for document in demo_documents[:3]:
        (notes / document.id).write_text(document.text, encoding="utf-8")
    run(binaries / "qgrag", "index", notes, "--out", tmp_path / "index", cwd=tmp_path)
    printed = run(binaries / "qgrag", "retrieve", tmp_path / "index", demo_documents[0].title, cwd=tmp_path)
    assert demo_documents[0].id in printed
    printed = run(binaries / "qgrag", "eval", "--dataset", "demo", "--retrievers", "bm25", "--out", tmp_path / "run")
    assert "bm25" in printed
    assert "qcg-table1" in run(binaries / "qgrag", "reproduce", "--list", cwd=tmp_path)


def left_out(folder, names):
    """What a checkout holds beside the project; packages may have the same names further down."""
    if Path(folder) != ROOT:
        return set()
    return shutil.ignore_patterns(".venv*", ".git", "runs", "build", "*.egg-info")(folder, names)


def run(*command, cwd=None):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, cwd=cwd, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
