"""An HTTP server with a tiny model and vLLM's API, with optional faults of other servers."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from enumerable_models import CONTEXT, END, letters

NAME = "tiny"
TAKEN = {
    "model", "prompt", "messages", "max_tokens", "temperature", "top_p", "seed", "n", "stop",
    "echo", "logprobs",
}  # fmt: skip


class Dialect:
    """Behaviour of the server.

    Attributes:
        fault: `none`; `silent` (no log-probabilities), `shifted` (those of prompts by one token),
            `deaf` (no echo), `words` (tokens as text), `hot` (reports values of temperature 1 but
            samples at a higher one), `scaled` (wrong log-probabilities of prompts), `broken`,
            `seedless` (ignores seeds), `unseeded` (refuses them), `stubborn` (one seed for all),
            `single` (ignores n), `uncounted` (no usage), `miscounted`, `chatless`, `wordless` (only
            chats), `strict` (refuses unknown fields), `fickle` (never greedy), `failing`
            (500 for echo).
        busy: number of requests that are refused first.
        tokenizer: tokenizer of the model; single letters by default.
    """

    def __init__(
        self, model: Any, fault: str = "none", busy: int = 0, tokenizer: Any = None
    ) -> None:
        self.model, self.fault, self.busy = model, fault, busy
        self.tokenizer = tokenizer or letters()
        self.end = END if tokenizer is None else tokenizer.eos_token_id
        self.context = CONTEXT if tokenizer is None else model.config.max_position_embeddings
        self.strict_length = tokenizer is not None
        self.seen: list[dict[str, Any]] = []

    def app(self) -> Starlette:
        return Starlette(
            routes=[
                Route("/v1/models", self.models),
                Route("/v1/completions", self.complete, methods=["POST"]),
                Route("/v1/chat/completions", self.chat, methods=["POST"]),
            ]
        )

    async def models(self, _: Request) -> JSONResponse:
        return JSONResponse({"data": [{"id": NAME, "max_model_len": self.context, "root": "tiny"}]})

    async def chat(self, request: Request) -> JSONResponse:
        asked = await request.json()
        if self.fault == "chatless" or not self.tokenizer.chat_template:
            return JSONResponse({"error": {"message": "no chat template"}}, 400)
        text = self.tokenizer.apply_chat_template(
            asked["messages"], tokenize=False, add_generation_prompt=True
        )
        return self._answer(asked | {"prompt": text}, chats=True)

    async def complete(self, request: Request) -> JSONResponse:
        asked = await request.json()
        if self.fault == "wordless":
            return JSONResponse({"error": {"message": "no such thing"}}, 404)
        return self._answer(asked, chats=False)

    def _answer(self, asked: dict[str, Any], *, chats: bool) -> JSONResponse:
        self.seen.append(asked)
        if self.busy:
            self.busy -= 1
            return JSONResponse({"error": "busy"}, 503)
        if self.fault == "broken" or (self.fault == "strict" and set(asked) - TAKEN):
            return JSONResponse({"error": {"message": "out of order"}}, 400)
        if self.fault == "unseeded" and "seed" in asked:
            return JSONResponse({"error": {"message": "no seeds"}}, 400)
        if self.fault == "failing" and asked.get("echo"):
            return JSONResponse({"error": {"message": "internal"}}, 500)
        prompt = asked["prompt"]
        if isinstance(prompt, str):
            prompt = self.tokenizer(prompt, add_special_tokens=False).input_ids
        if self.strict_length and len(prompt) + asked["max_tokens"] > self.context:
            return JSONResponse({"error": {"message": "longer than the context"}}, 400)
        several = 1 if self.fault == "single" else asked.get("n", 1)
        choices = [self._choice(prompt, asked, number, chats=chats) for number in range(several)]
        wrote = sum(choice.pop("count") for choice in choices)
        said: dict[str, Any] = {"choices": choices}
        if self.fault != "uncounted":
            off = 3 if self.fault == "miscounted" else 0
            said["usage"] = {"prompt_tokens": len(prompt), "completion_tokens": wrote + off}
        return JSONResponse(said)

    def _choice(
        self, prompt: list[int], asked: dict[str, Any], number: int, *, chats: bool
    ) -> dict[str, Any]:
        echo = asked.get("echo") and self.fault != "deaf"
        tokens, values = self._read(prompt) if echo else ([], [])
        written, said = self._write(prompt, asked, number)
        names = [self._name(token, asked) for token in [*tokens, *written]]
        logprobs = {"tokens": names, "token_logprobs": [*values, *said]}
        reason = "stop" if written[-1:] == [self.end] else "length"
        text = self._text(written)
        for stop in asked.get("stop") or ():
            reason = "stop" if stop in text else reason
            text = text.partition(stop)[0]
        quiet = self.fault == "silent" or not asked.get("logprobs")
        shown = {"message": {"role": "assistant", "content": text}} if chats else {"text": text}
        if echo:
            shown = {"text": self._text(tokens) + text}
        weights = None if quiet else logprobs
        return {"logprobs": weights, "finish_reason": reason, "count": len(written), **shown}

    def _name(self, token: int, asked: dict[str, Any]) -> str:
        if self.fault == "words":
            return str(self.tokenizer.convert_ids_to_tokens(token))
        if asked.get("return_tokens_as_token_ids"):
            return f"token_id:{token}"
        return str(self.tokenizer.decode([token]))

    def _text(self, tokens: list[int]) -> str:
        return str(self.tokenizer.decode(tokens, skip_special_tokens=True))

    def _read(self, tokens: list[int]) -> tuple[list[int], list[float | None]]:
        every = self._all_chances(tokens)
        values = [every[place - 1][tokens[place]] for place in range(1, len(tokens))]
        if self.fault == "shifted":
            values = [*values[1:], -1.0][: len(values)]
        if self.fault == "scaled":
            values = [2 * value for value in values]
        return tokens, [None, *values]

    def _write(
        self, prompt: list[int], asked: dict[str, Any], number: int
    ) -> tuple[list[int], list[float]]:
        seed = {
            "seedless": len(self.seen),
            "unseeded": len(self.seen),
            "fickle": len(self.seen),
            "stubborn": 0,
        }
        random = np.random.default_rng([seed.get(self.fault, asked.get("seed", 0)), number])
        tokens: list[int] = []
        said: list[float] = []
        while len(tokens) < asked["max_tokens"] and tokens[-1:] != [self.end]:
            logs = np.array(self._all_chances([*prompt, *tokens])[-1])
            tokens.append(self._chosen(logs, asked.get("temperature", 1.0), random))
            said.append(float(logs[tokens[-1]]))
            stops = asked.get("stop") or ()
            if stops and any(stop in self._text(tokens) for stop in stops):
                break
        return tokens, said

    def _chosen(self, logs: Any, temperature: float, random: Any) -> int:
        heat = {"hot": 4.0, "fickle": 1.0}.get(self.fault, temperature)
        if not heat:
            return int(logs.argmax())
        chances = np.exp(logs / heat) / np.exp(logs / heat).sum()
        return int(random.choice(len(chances), p=chances))

    def _all_chances(self, tokens: list[int]) -> list[list[float]]:
        with torch.inference_mode():
            logits = self.model(input_ids=torch.tensor([tokens])).logits[0]
        found: list[list[float]] = logits.double().log_softmax(-1).tolist()
        return found


@contextmanager
def serving(dialect: Dialect) -> Iterator[str]:
    """Run the server; yield its address."""
    server = uvicorn.Server(
        uvicorn.Config(dialect.app(), host="127.0.0.1", port=0, log_level="error")
    )
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        thread.join(0.01)
    port = server.servers[0].sockets[0].getsockname()[1]
    try:
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        server.should_exit = True
        thread.join()
