"""Any OpenAI-compatible chat endpoint: vLLM, SGLang, Ollama, llama.cpp, OpenAI and others."""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import openai

from qgrag.llm.backend import Budget, OnReply, over_budget
from qgrag.llm.config import LLMConfig
from qgrag.llm.endpoint.faults import Fault, classify
from qgrag.llm.endpoint.forms import Ladder, RequestForm, ignores_format
from qgrag.llm.endpoint.replies import read_response
from qgrag.llm.endpoint.session import EndpointSession, OpenCall, OpenCalls, UnusableAnswerError
from qgrag.llm.errors import LLMUnavailableError
from qgrag.llm.records import Reply, Request
from qgrag.llm.structured import Rung, with_format
from qgrag.llm.tokens import estimate_message_tokens

logger = logging.getLogger(__name__)

FAILURES_IN_A_ROW = 8
Answer = tuple[Reply, Fault | None]
ENDPOINT_FAULTS = frozenset({"rate_limit", "server", "timeout", "connection"})


class EndpointBackend:
    """Sends requests concurrently, retries what may pass, and finds out how the endpoint takes a schema.

    The endpoint counts as unavailable after `FAILURES_IN_A_ROW` requests (or twice the concurrency, if
    that is more) have used up their attempts one after another, and at once where nobody has ever been there.
    """

    def __init__(self, config: LLMConfig) -> None:
        self.config = config
        self._session = EndpointSession(config.base_url, config.pace)
        self._ladder = Ladder(config.structured)
        self._finding_rung = asyncio.Lock()
        self._form = RequestForm()
        self._answered = False
        self._failed_in_a_row = 0

    @property
    def name(self) -> str:
        return self.config.model

    def generate(self, requests: Sequence[Request], budget: Budget, on_reply: OnReply) -> None:
        """See `Backend.generate`."""
        queue = iter(enumerate(requests))
        workers = min(self.config.pace.concurrency, len(requests))
        self._session.run(lambda calls: self._work(queue, budget, calls, on_reply), workers)

    def close(self) -> None:
        self._session.close()

    async def _work(
        self, queue: Iterator[tuple[int, Request]], budget: Budget, calls: OpenCalls, on_reply: OnReply
    ) -> None:
        for i, request in queue:
            if not budget.admit():
                on_reply(i, over_budget(budget))
                continue
            with calls.open(request.owner) as call:
                reply = await self._answer(request, call)
            budget.spend(reply.prompt_tokens + reply.completion_tokens)
            on_reply(i, reply)

    async def _answer(self, request: Request, call: OpenCall) -> Reply:
        """The reply; one without a usable text has an error, and all tokens that its attempts have cost."""
        estimate = estimate_message_tokens(request.messages) + request.sampling.max_tokens // 2
        spent = Reply()

        async def attempt() -> Reply:
            nonlocal spent
            before = spent.prompt_tokens + spent.completion_tokens
            answers = 0
            async for answer in self._post_structured(request):
                reply, fault = answer
                spent = Reply(
                    prompt_tokens=spent.prompt_tokens + reply.prompt_tokens,
                    completion_tokens=spent.completion_tokens + reply.completion_tokens,
                    seconds=spent.seconds + reply.seconds,
                    retries=spent.retries + min(answers, 1),
                )
                answers += 1
            self._session.pacer.correct(spent.prompt_tokens + spent.completion_tokens - before - estimate)
            if fault is not None:
                raise UnusableAnswerError(fault)
            return reply

        sent = await self._session.send(attempt, estimate, call)
        if sent.fault is not None:
            self._count_failure(sent.fault)
        return replace(
            spent if sent.value is None else sent.value,
            prompt_tokens=spent.prompt_tokens,
            completion_tokens=spent.completion_tokens,
            retries=spent.retries + sent.attempts - 1,
            error=sent.fault.as_error(sent.attempts) if sent.fault else None,
        )

    async def _post_structured(self, request: Request) -> AsyncIterator[Answer]:
        """What the endpoint answers; the last answer counts, and those before it show how it is to be asked."""
        if request.schema is None:
            yield await self._post(request, "prompt")
            return
        if not self._ladder.is_known(request.schema):
            async with self._finding_rung:
                if not self._ladder.is_known(request.schema):
                    async for answer in self._descend(request, request.schema):
                        yield answer
                    return
        yield await self._post(request, self._ladder.rung(request.schema))

    async def _descend(self, request: Request, schema: Mapping[str, Any]) -> AsyncIterator[Answer]:
        """Find out how the endpoint takes a schema; a way counts once it was neither refused nor ignored."""
        rung = self._ladder.rung(schema)
        while lower := self._ladder.below(schema, rung):
            try:
                reply, fault = await self._post(request, rung)
            except openai.APIStatusError as error:
                if not classify(error, 0.0).may_be_format:
                    raise
            else:
                yield reply, fault
                if not ignores_format(reply.text):
                    break
            rung = lower
        else:
            yield await self._post(request, rung)
        if self._ladder.settle(schema, rung):
            logger.warning("%s refuses or ignores stricter forms; asking for JSON by %s", self._session.url, rung)

    async def _post(self, request: Request, rung: Rung) -> Answer:
        started = time.monotonic()
        response = await self._create_in_form(self._body(request, rung))
        self._answered, self._failed_in_a_row = True, 0
        return read_response(response, request, time.monotonic() - started)

    def _body(self, request: Request, rung: Rung) -> dict[str, Any]:
        messages, response_format = with_format(request, rung)
        sampling = request.sampling
        body: dict[str, Any] = {
            "model": self.config.model,
            "messages": messages,
            "stream": False,
            "temperature": sampling.temperature,
            "top_p": sampling.top_p,
            "max_tokens": sampling.max_tokens,
        }
        if sampling.seed is not None:
            body["seed"] = sampling.seed
        if sampling.stop:
            body["stop"] = list(sampling.stop)
        if response_format is not None:
            body["response_format"] = response_format
        if sampling.extra:
            body["extra_body"] = dict(sampling.extra)
        return body

    async def _create_in_form(self, body: dict[str, Any]) -> Any:
        """A completion; what is refused for its form is sent again as long as there is another form to send it in."""
        while True:
            sent = self._form.apply(body)
            try:
                return await self._create(sent)
            except openai.APIStatusError as error:
                self._form.learn(error)
                if self._form.apply(body) == sent:
                    raise

    async def _create(self, body: dict[str, Any]) -> Any:
        async with asyncio.timeout(self.config.pace.total_timeout):
            return await self._session.client.chat.completions.create(**body)

    def _count_failure(self, fault: Fault) -> None:
        """Raise where this fault, or the row of them that it ends, leaves no hope for other requests."""
        if fault.ends:
            raise LLMUnavailableError(self._unavailable(fault))
        if fault.kind not in ENDPOINT_FAULTS:
            return
        self._failed_in_a_row += 1
        nobody_there = fault.kind == "connection" and not self._answered
        if nobody_there or self._failed_in_a_row >= max(FAILURES_IN_A_ROW, 2 * self.config.pace.concurrency):
            raise LLMUnavailableError(self._unavailable(fault))

    def _unavailable(self, fault: Fault) -> str:
        remedy = fault.remedy or {
            "connection": "start the server, or correct llm.base_url",
            "request": "check llm.model and llm.base_url, and the key in QGRAG_LLM_API_KEY or OPENAI_API_KEY",
            "rate_limit": "lower llm.pace, or raise the quota; what was answered is kept, run the same again later",
        }.get(fault.kind, "what was answered is kept; run the same again when the server is well")
        return (
            f"the language model {self.config.model!r} at {self._session.url} cannot be used: {fault.message}; {remedy}"
        )
