"""The commands and code of the guides, run in order, as a reader would copy them; and the site's links."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
GUIDES = ["guides/own-documents", "guides/reward-model", "guides/adapt", "guides/new-pipeline", "evaluation"]
BLOCK = re.compile(r"^```(?P<language>\w+)\n(?P<code>.*?)^```$", re.M | re.S)
FILE_MARK = "# file: "


def script_of(page: Path) -> str:
    """One shell script: `sh` blocks as they are, `python` blocks run or, where they name one, written to a file."""
    parts = ["set -euo pipefail"]
    for number, block in enumerate(BLOCK.finditer(page.read_text(encoding="utf-8"))):
        language, code = block["language"], block["code"]
        if language == "sh":
            parts.append(code)
        elif language == "python":
            first = code.split("\n", 1)[0]
            name = first.removeprefix(FILE_MARK) if first.startswith(FILE_MARK) else f"block{number}.py"
            parts.append(f"cat > {name} <<'END_OF_BLOCK'\n{code}END_OF_BLOCK")
            if not first.startswith(FILE_MARK):
                parts.append(f"python {name}")
    return "\n".join(parts)


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which `configs` and `tests` are found, as in a checkout; the guides share it."""
    folder = tmp_path_factory.mktemp("reader")
    (folder / "configs").symlink_to(ROOT / "configs")
    (folder / "tests").symlink_to(ROOT / "tests")
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("guide", GUIDES)
def test_every_command_of_a_guide_works(guide: str, checkout: Path) -> None:
    bin_folder = Path(sys.executable).parent
    environment = {
        **os.environ,
        "PATH": f"{bin_folder}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": f"{ROOT}{os.pathsep}{checkout}",
        "HF_HUB_OFFLINE": "1",
        "COLUMNS": "120",
    }
    done = subprocess.run(
        ["bash", "-c", script_of(DOCS / f"{guide}.md")], cwd=checkout, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, f"{done.stdout[-3000:]}\n{done.stderr[-3000:]}"


def test_the_site_is_built_without_a_broken_link(tmp_path: Path) -> None:
    pytest.importorskip("sphinx", reason="the extra 'docs' is not installed")
    pytest.importorskip("myst_parser", reason="the extra 'docs' is not installed")
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-b", "html", str(DOCS), str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    for page in (*GUIDES, "index", "results"):
        assert (tmp_path / f"{page}.html").is_file()


def test_only_blocks_that_need_something_else_are_not_run() -> None:
    for guide in GUIDES:
        for block in BLOCK.finditer((DOCS / f"{guide}.md").read_text(encoding="utf-8")):
            assert block["language"] in {"sh", "python", "console", "yaml"}
            if block["language"] == "console":
                assert any(needed in block["code"] for needed in ("llm", "DATA", "sets.yaml"))
