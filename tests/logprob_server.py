"""A real HTTP server with a tiny model behind it, in vLLM's dialect, with the faults of others."""

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


class Dialect:
    """What the server really does.

    Attributes:
        fault: `none`; `silent` (no log-probabilities), `shifted` (by one token when it reads),
            `deaf` (no echo), `words` (tokens as text), `hot` (says what it gives at temperature 1
            but samples hotter), `scaled` (log-probabilities of what it reads are off), `broken`.
        busy: so many requests are turned away first.
    """

    def __init__(self, model: Any, fault: str = "none", busy: int = 0) -> None:
        self.model, self.fault, self.busy = model, fault, busy
        self.seen: list[dict[str, Any]] = []

    def app(self) -> Starlette:
        return Starlette(
            routes=[
                Route("/v1/models", self.models),
                Route("/v1/completions", self.complete, methods=["POST"]),
            ]
        )

    async def models(self, _: Request) -> JSONResponse:
        return JSONResponse({"data": [{"id": NAME, "max_model_len": CONTEXT, "root": "tiny"}]})

    async def complete(self, request: Request) -> JSONResponse:
        asked = await request.json()
        self.seen.append(asked)
        if self.busy:
            self.busy -= 1
            return JSONResponse({"error": "busy"}, 503)
        if self.fault == "broken":
            return JSONResponse({"error": {"message": "out of order"}}, 400)
        prompt = asked["prompt"]
        if isinstance(prompt, str):
            prompt = letters()(prompt, add_special_tokens=False).input_ids
        tokens, values = self._read(prompt) if asked.get("echo") else ([], [])
        if self.fault == "deaf":
            tokens, values = [], []
        written, said = self._write(prompt, asked)
        names = [
            letters().convert_ids_to_tokens(t) if self.fault == "words" else f"token_id:{t}"
            for t in [*tokens, *written]
        ]
        logprobs = {"tokens": names, "token_logprobs": [*values, *said]}
        reason = "stop" if written[-1:] == [END] else "length"
        found = None if self.fault == "silent" else logprobs
        return JSONResponse({"choices": [{"logprobs": found, "finish_reason": reason}]})

    def _read(self, tokens: list[int]) -> tuple[list[int], list[float | None]]:
        values = [self._chances(tokens[:place])[tokens[place]] for place in range(1, len(tokens))]
        if self.fault == "shifted":
            values = [*values[1:], -1.0][: len(values)]
        if self.fault == "scaled":
            values = [2 * value for value in values]
        return tokens, [None, *values]

    def _write(self, prompt: list[int], asked: dict[str, Any]) -> tuple[list[int], list[float]]:
        random = np.random.default_rng(asked.get("seed", 0))
        tokens: list[int] = []
        said: list[float] = []
        while len(tokens) < asked["max_tokens"] and tokens[-1:] != [END]:
            logs = np.array(self._chances([*prompt, *tokens]))
            heat = 4.0 if self.fault == "hot" else 1.0
            chances = np.exp(logs / heat) / np.exp(logs / heat).sum()
            tokens.append(int(random.choice(len(chances), p=chances)))
            said.append(float(logs[tokens[-1]]))
        return tokens, said

    def _chances(self, tokens: list[int]) -> list[float]:
        with torch.inference_mode():
            logits = self.model(input_ids=torch.tensor([tokens])).logits[0, -1]
        found: list[float] = logits.double().log_softmax(-1).tolist()
        return found


@contextmanager
def serving(dialect: Dialect) -> Iterator[str]:
    """The server's address while it runs."""
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
