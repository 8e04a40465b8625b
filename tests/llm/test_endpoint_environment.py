"""Keys, proxies, certificates and addresses as users' environments have them."""

import shutil
import ssl
import subprocess
from pathlib import Path
from urllib.parse import quote

import pytest

from qgrag.errors import ConfigError
from qgrag.llm.cached_model import load_language_model
from qgrag.llm.config import LLMConfig, Pace, Sampling
from qgrag.llm.endpoint.client import make_client
from qgrag.llm.endpoint.keys import redact
from qgrag.llm.errors import LLMUnavailableError
from qgrag.models.remote_embedder_config import RemoteEmbedderConfig
from tests.llm.server import Answer, asking, connected, fail, say, serving

KEY = "sk-p+l/a=s%Nineteen"
ONE_TRY = Pace(max_retries=0)


@pytest.fixture(autouse=True)
def no_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)


def test_white_space_around_a_key_is_no_part_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QGRAG_LLM_API_KEY", f"  {KEY}\n")
    with serving(lambda call: say("x")) as server, connected(server) as model:
        assert model.complete(asking("q"), step="test")[0].text == "x"
        assert server.calls[0].headers["authorization"] == f"Bearer {KEY}"


@pytest.mark.parametrize("variable", ["QGRAG_LLM_API_KEY", "OPENAI_ORG_ID"])
@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("“sk-secret”", "character 1 of 11 is 'left double quotation mark'"),
        ("sk-secrét", "latin small letter e with acute"),
        ("sk-sec ret", "'space'"),
        ("sk-sec\nret", "'U\\+000A'|'u\\+000a'"),
        ("sk-sec\u200bret", "zero width space"),
    ],
)
def test_a_key_that_no_header_can_carry_is_refused_unseen(
    variable: str, value: str, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, value)
    with pytest.raises(ConfigError, match=words) as caught:
        make_client("http://127.0.0.1:9/v1", Pace())
    assert variable in str(caught.value)
    assert "sk-sec" not in str(caught.value)


@pytest.mark.parametrize("raw", [KEY, f"{KEY}\n", f" {KEY}", "sk-é“x”-key", 'sk-"q"-key', "sk-a\\b-key"])
def test_a_key_is_redacted_in_every_form(raw: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QGRAG_LLM_API_KEY", raw)
    key = raw.strip()
    for form in (
        raw,
        key,
        repr(raw),
        repr(key),
        ascii(key),
        repr(key.encode()),
        quote(key),
        quote(key, safe="").lower(),
    ):
        shown = redact(f"bad header {form} here")
        assert shown.startswith("bad header")
        assert "***" in shown
        assert key[-4:] not in shown


@pytest.mark.parametrize("padding", [0, 385, 390])
@pytest.mark.parametrize("status", [200, 400])
def test_an_endpoint_that_repeats_the_key_does_not_get_it_printed(
    padding: int, status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("QGRAG_LLM_API_KEY", KEY)
    message = f"{'x' * padding} {KEY} is wrong"
    answer = fail(400, message) if status == 400 else say(None, refusal=message)
    with serving(lambda call: answer) as server, connected(server, pace=ONE_TRY) as model:
        error = model.complete(asking("q"), step="test")[0].error
    assert error is not None
    assert KEY[:6] not in str(error)


def test_answers_are_asked_for_whole() -> None:
    with serving(lambda call: say("x")) as server, connected(server) as model:
        model.complete(asking("q"), step="test")
        assert server.calls[0].body["stream"] is False
    with pytest.raises(ConfigError, match="stream"):
        Sampling(extra={"stream": True})


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("http://127.0.0.1:99999/v1", "65535"),
        ("http://127.0.0.1:abc/v1", "abc"),
        ("http://127.0.0.1:0/v1", "no server"),
        ("http://exa mple/v1", "spaces"),
        ("http://127.0.0.1/v1\x00", "control"),
        ("http:///v1", "no server"),
        ("ftp://127.0.0.1/v1", "http"),
        ("localhost:8000/v1", "http"),
        ("http://[::1/v1", "not an address"),
    ],
)
def test_an_address_that_is_none_is_refused(url: str, words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError, match=words):
        LLMConfig(model="m", base_url=url)
    with pytest.raises(ConfigError, match=words):
        RemoteEmbedderConfig(model="m", base_url=url)
    if "\x00" not in url:
        monkeypatch.setenv("OPENAI_BASE_URL", url)
        with pytest.raises(ConfigError, match=f"OPENAI_BASE_URL.*{words}"):
            make_client("", Pace())


@pytest.mark.parametrize(
    ("variable", "value", "words"),
    [
        ("ALL_PROXY", "socks5://user:secret@127.0.0.1:9", "pip install socksio.*ALL_PROXY=socks5://127.0.0.1:9"),
        ("HTTP_PROXY", "ftp://user:secret@127.0.0.1:9", "HTTP_PROXY=ftp://127.0.0.1:9"),
        ("SSL_CERT_FILE", "/nonexistent/ca.pem", "SSL_CERT_FILE names '/nonexistent/ca.pem'.*No such file"),
        ("SSL_CERT_FILE", __file__, "SSL_CERT_FILE"),
    ],
)
def test_an_environment_that_no_client_can_use_is_named(
    variable: str, value: str, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, value)
    with pytest.raises(ConfigError, match=words) as caught:
        make_client("https://127.0.0.1:9/v1", Pace())
    assert "secret" not in str(caught.value)


def asked_at(url: str) -> str:
    """What is said of an endpoint that cannot be used."""
    model = load_language_model(LLMConfig(model="m", base_url=url, pace=ONE_TRY), None)
    try:
        with pytest.raises(LLMUnavailableError) as caught:
            model.complete(asking("q"), step="test")
    finally:
        model.close()
    return str(caught.value)


def test_a_proxy_that_is_dead_is_blamed_and_not_the_endpoint(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://user:secret@127.0.0.1:9")
    message = asked_at("http://192.0.2.1/v1")
    assert "the proxy http://127.0.0.1:9 failed" in message
    assert "NO_PROXY" in message
    assert "secret" not in message
    assert "start the server" not in message


def test_a_proxy_that_wants_a_password_is_blamed() -> None:
    with serving(lambda call: Answer(407, {})) as server:
        message = asked_at(server.url)
    assert "proxy wants a name and password" in message
    assert "llm.model" not in message


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_a_redirect_is_named_and_not_followed(status: int) -> None:
    moved = Answer(status, {}, {"Location": "https://192.0.2.1/login"})
    with serving(lambda call: moved) as server:
        message = asked_at(server.url)
        assert len(server.calls) == 1
    assert f"HTTP {status}: redirected to https://192.0.2.1/login" in message
    assert "base_url" in message


def test_a_server_without_tls_is_not_asked_by_https() -> None:
    with serving(lambda call: say("x")) as server:
        message = asked_at(server.url.replace("http://", "https://"))
    assert "TLS failed" in message
    assert "write http://" in message
    assert "start the server" not in message


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl makes the certificate")
def test_a_certificate_that_is_not_trusted_is_named(tmp_path: Path) -> None:
    names = ["-keyout", str(tmp_path / "key.pem"), "-out", str(tmp_path / "cert.pem")]
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"]
    subprocess.run([*command, *names], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "cert.pem", tmp_path / "key.pem")
    with serving(lambda call: say("x")) as server:
        server._server.socket = context.wrap_socket(server._server.socket, server_side=True)
        message = asked_at(server.url.replace("http://", "https://"))
    assert "certificate is not trusted" in message
    assert "SSL_CERT_FILE" in message
    assert "start the server" not in message
