"""Whether a recipe's model can be asked, found out without asking it anything."""

import json
import threading
from collections.abc import Sequence
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest

from qgrag.llm.config import LLMConfig
from qgrag.reproduce.requirements import endpoint_problem


class Gateway:
    """The list of models that an endpoint shows, to those with its key."""

    def __init__(self, models: Sequence[str], key: str = "", status: int = 200) -> None:
        self.models, self.key, self.status = models, key, status

    def __enter__(self) -> "Gateway":
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                wrong = outer.key and self.headers["Authorization"] != f"Bearer {outer.key}"
                body = json.dumps({"data": [{"id": model} for model in outer.models]}).encode()
                self.send_response(401 if wrong else outer.status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self._server = HTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def problem(self, model: str) -> str:
        return endpoint_problem(LLMConfig(model=model, base_url=f"http://127.0.0.1:{self._server.server_port}/v1"))


def test_an_endpoint_s_key_and_models_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "QGRAG_LLM_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    with Gateway(["a/reader", "a/judge"]) as open_to_all:
        assert not open_to_all.problem("a/reader")
        assert open_to_all.problem("a/other").endswith("serves a/reader, a/judge")
    with Gateway(["a/reader"], key="secret") as guarded:
        assert "refuses the key: set QGRAG_LLM_API_KEY" in guarded.problem("a/reader")
        monkeypatch.setenv("QGRAG_LLM_API_KEY", "secret")
        assert "serves a/reader" in guarded.problem("a/other")
        monkeypatch.delenv("QGRAG_LLM_API_KEY")
    with Gateway([], status=404) as without_list:
        assert not without_list.problem("a/reader")
    with Gateway([], status=503) as gateway:
        assert "nothing is behind the gateway" in gateway.problem("a/reader")
    assert "nothing answers" in gateway.problem("a/other")
    assert "set OPENAI_API_KEY" in endpoint_problem(LLMConfig(model="gpt-4o-mini"))
