"""What a command imports, since imports are most of what a short command takes."""

import subprocess
import sys
from pathlib import Path

import pytest

from qgrag.cli.main import main

OF_MODELS = {"transformers", "sentence_transformers", "spacy", "torch_geometric", "faiss", "openai"}
OF_FIGURES = {"scipy", "sklearn", "matplotlib", "torchmetrics", "nltk", "bm25s"}
SLOW = {"torch", "pyarrow", "numpy", "pydantic", *OF_MODELS, *OF_FIGURES}


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("start")
    (folder / "notes").mkdir()
    (folder / "notes" / "euler.txt").write_text("Leonhard Euler was born in Basel in 1707.")
    assert main(["index", str(folder / "notes"), "--out", str(folder / "index")]) == 0
    return folder / "index"


def imported(*arguments: str) -> set[str]:
    code = (
        "import sys\nfrom qgrag.cli.main import main\n"
        f"try: code = main({list(arguments)!r})\nexcept SystemExit as stop: code = stop.code\n"
        f"print(code, *(name for name in {SLOW!r} if name in sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    code, *names = done.stdout.splitlines()[-1].split()
    assert code == "0", done.stderr
    return set(names)


def test_help_and_version_import_nothing_slow() -> None:
    assert imported("--help") == set()
    assert imported("--version") == set()
    assert imported("train", "--help") == set()


def test_info_reads_the_manifest_alone(index: Path) -> None:
    assert imported("info", str(index)) == set()


def test_bm25_loads_no_model(index: Path) -> None:
    assert imported("retrieve", str(index), "--retriever", "bm25", "Euler") <= SLOW - OF_MODELS - OF_FIGURES


@pytest.mark.parametrize("command", ["retrieve", "ask", "eval", "index", "sweep", "check"])
def test_help_of_a_command_loads_no_model(command: str) -> None:
    assert imported(command, "--help") <= SLOW - OF_MODELS - OF_FIGURES
