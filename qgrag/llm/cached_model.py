"""A language model with a cache, validated answers and accounting, on top of any backend."""

import hashlib
import json
import logging
import time
from dataclasses import asdict, replace
from pathlib import Path

from pydantic import BaseModel

from qgrag.errors import ConfigError
from qgrag.llm.backend import Backend, Budget
from qgrag.llm.cache import ResponseCache, request_key
from qgrag.llm.config import LLMConfig
from qgrag.llm.interpret import interpret
from qgrag.llm.model import Batch, LanguageModel, StepEstimate
from qgrag.llm.parsing import json_schema
from qgrag.llm.prompts import fill_turn
from qgrag.llm.records import Completion, Message, Reply, Request
from qgrag.llm.tokens import estimate_message_tokens
from qgrag.llm.usage import Usage, active_meters
from qgrag.progress import progress

logger = logging.getLogger(__name__)

SHOWN_ANSWER_CHARS = 4000
ASKED_AGAIN_FOR = frozenset({"invalid", "cut_off", "repetition"})
ANSWER_FAULTS = ASKED_AGAIN_FOR | {"empty"}


class CachedLanguageModel(LanguageModel):
    """A backend with a cache, validation of structured answers, and accounting.

    Args:
        config: sampling, how often to ask again, and limits.
        backend: who answers.
        cache: where answers are kept; None asks every time, for measurements.
    """

    def __init__(self, config: LLMConfig, backend: Backend, cache: ResponseCache | None = None) -> None:
        self.config = config
        self.backend = backend
        self.cache = cache
        self.budget = Budget(config.max_calls, config.max_tokens_total)

    @property
    def name(self) -> str:
        return self.backend.name

    @property
    def fingerprint(self) -> str:
        content = json.dumps([self.backend.name, asdict(self.config.sampling)], sort_keys=True)
        return hashlib.blake2b(content.encode(), digest_size=8).hexdigest()

    @property
    def max_tokens(self) -> int:
        return self.config.sampling.max_tokens

    def close(self) -> None:
        self.backend.close()
        if self.cache is not None:
            self.cache.close()

    def answer(self, batch: Batch) -> list[Completion]:
        """See `LanguageModel.answer`."""
        started = time.monotonic()
        account = _Account(batch.step)
        try:
            return self._complete(self._requests(batch), batch.schema, account)
        finally:
            account.close(time.monotonic() - started)

    def forecast(self, batch: Batch, answer_tokens: int) -> StepEstimate:
        """See `LanguageModel.forecast`."""
        distinct = {self._key(r): r for r in self._requests(batch)}
        to_send = [r for key, r in distinct.items() if self.cache is None or self.cache.get(key) is None]
        return StepEstimate(
            batch.step,
            calls=len(to_send),
            cache_hits=len(distinct) - len(to_send),
            prompt_tokens=sum(estimate_message_tokens(r.messages) for r in to_send),
            completion_tokens=len(to_send) * min(answer_tokens, self.max_tokens),
        )

    def _requests(self, batch: Batch) -> list[Request]:
        form = None if batch.schema is None else json_schema(batch.schema)
        return [
            Request(
                tuple(_sendable(m) for m in messages),
                self.config.sampling,
                form,
                batch.owners[i] if batch.owners else "",
            )
            for i, messages in enumerate(batch.conversations)
        ]

    def _complete(
        self, requests: list[Request], schema: type[BaseModel] | None, account: "_Account"
    ) -> list[Completion]:
        completions: list[Completion] = [Completion()] * len(requests)
        keys: list[list[str]] = [[] for _ in requests]
        pending = list(range(len(requests)))
        for round_ in range(self.config.asks_again + 1):
            for i, (key, completion) in zip(pending, self._round(requests, pending, schema, account, round_)):
                keys[i].append(key)
                completions[i] = replace(completion, asked_again=round_)
            if schema is None or round_ == self.config.asks_again:
                break
            pending = [i for i in pending if _is_asked_again(completions[i])]
            for i in pending:
                requests[i] = _asking_again(requests[i], completions[i])
        for i, completion in enumerate(completions):
            if completion.error is not None:
                self._reject(keys[i], requests[i], completion, account)
        unsent = sum(c.error is not None and c.error.kind == "budget" for c in completions)
        if unsent:
            logger.warning("%s: %d requests not sent, the budget is spent (%s)", account.step, unsent, self.budget)
        return completions

    def _round(
        self,
        requests: list[Request],
        pending: list[int],
        schema: type[BaseModel] | None,
        account: "_Account",
        round_: int,
    ) -> list[tuple[str, Completion]]:
        """The key and the outcome of each pending request: from the cache, or from the backend and then kept."""
        keys = [self._key(requests[i]) for i in pending]
        distinct = {key: requests[i] for key, i in zip(keys, pending)}
        outcome: dict[str, Completion] = {}
        to_send: list[str] = []
        for key, request in distinct.items():
            kept = self.cache.get(key) if self.cache is not None else None
            if kept is None:
                to_send.append(key)
                continue
            outcome[key] = interpret(kept, schema, cached=True)
            account.add(request.owner, Usage(cache_hits=1, asked_again=int(round_ > 0)))
        if to_send:
            with progress(f"Asking {self.name} ({account.step})", len(to_send)) as bar:

                def on_reply(index: int, reply: Reply) -> None:
                    key = to_send[index]
                    owner = distinct[key].owner
                    if self.cache is not None and reply.error is None:
                        self.cache.put(key, self.name, account.step, owner, reply)
                    outcome[key] = interpret(reply, schema)
                    account.add(owner, _spent(reply, round_))
                    bar.advance()

                self.backend.generate([distinct[key] for key in to_send], self.budget, on_reply)
        return [(key, outcome[key]) for key in keys]

    def _reject(self, keys: list[str], request: Request, completion: Completion, account: "_Account") -> None:
        account.add(request.owner, Usage(failures=1))
        if completion.error and completion.error.kind != "budget":
            logger.warning("%s: %s: %s", account.step, request.owner or "request", completion.error)
        if self.cache is not None and completion.error and completion.error.kind in ANSWER_FAULTS:
            for key in keys:
                self.cache.reject(key)

    def _key(self, request: Request) -> str:
        return request_key(self.name, request)


class _Account:
    """Books the spending of one `complete` with the meters of its caller."""

    def __init__(self, step: str) -> None:
        self.step = step
        self._meters = active_meters()

    def add(self, owner: str, usage: Usage) -> None:
        for meter in self._meters:
            meter.add(self.step, replace(usage, seconds=0.0))
            if owner:
                meter.add_owner(self.step, owner, usage)

    def close(self, seconds: float) -> None:
        for meter in self._meters:
            meter.add(self.step, Usage(seconds=seconds))


def _spent(reply: Reply, round_: int) -> Usage:
    answered = reply.prompt_tokens > 0 or reply.error is None
    return Usage(
        calls=int(answered),
        prompt_tokens=reply.prompt_tokens,
        completion_tokens=reply.completion_tokens,
        retries=reply.retries,
        asked_again=int(answered and round_ > 0),
        seconds=reply.seconds,
    )


def _is_asked_again(completion: Completion) -> bool:
    return completion.error is not None and completion.error.kind in ASKED_AGAIN_FOR and bool(completion.text)


def _asking_again(request: Request, completion: Completion) -> Request:
    """The request with the answer that it got and what is wrong with it."""
    error = completion.error.message if completion.error else ""
    turns: tuple[Message, ...] = (
        {"role": "assistant", "content": completion.text[:SHOWN_ANSWER_CHARS]},
        {"role": "user", "content": fill_turn("ask_again", error=error)},
    )
    return replace(request, messages=(*request.messages, *turns))


def _sendable(message: Message) -> Message:
    """The message without lone surrogates, which no endpoint can be sent."""
    return {**message, "content": message["content"].encode("utf-8", "replace").decode("utf-8")}


def load_language_model(config: LLMConfig, cache: Path | None) -> CachedLanguageModel:
    """The model that a configuration describes.

    Args:
        config: which model, and how it is asked.
        cache: file for its answers, shared by every run that should not pay twice; None to ask anew each
            time. Keys carry the name of the model: give each server a file of its own where servers use one name
            for different models.

    Raises:
        ConfigError: OpenAI's own endpoint is meant and the environment has no key; or the cache is no such
            file.
        ModelNotFoundError: an in-process model's weights are not there.
    """
    if not config.model:
        raise ConfigError("llm.model is empty: name the model that the endpoint serves, or a model folder")
    return CachedLanguageModel(config, _backend(config), ResponseCache(cache) if cache is not None else None)


def _backend(config: LLMConfig) -> Backend:
    if config.backend == "openai":
        from qgrag.llm.endpoint.backend import EndpointBackend

        return EndpointBackend(config)
    from qgrag.llm.in_process import InProcessBackend

    return InProcessBackend(config)
