"""Contents of server replies: text, finish reason, tokens, log-probabilities."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from forgetmap._http import RefusedError, TransientError
from forgetmap.evaluation.backends.servers.client import as_count

LOGPROB_TOLERANCE = 0.05
"""Difference in nats between two passes over one token, due to half precision and batching."""


@dataclass(frozen=True, slots=True)
class Weights:
    """Tokens as text with their log-probabilities; None for the first token of a prompt."""

    tokens: tuple[str, ...]
    logprobs: tuple[float | None, ...]

    def behind(self, length: int) -> Weights:
        """Return all but the first `length` tokens."""
        return Weights(self.tokens[length:], self.logprobs[length:])

    def first(self, length: int) -> Weights:
        """Return the first `length` tokens."""
        return Weights(self.tokens[:length], self.logprobs[:length])


@dataclass(frozen=True, slots=True)
class ServerReply:
    """One choice of a reply.

    Attributes:
        text: generated text.
        reason: finish reason stated by the server.
        tokens_in: number of prompt tokens stated by the server.
        tokens_out: number of generated tokens stated by the server.
        weights: log-probabilities, if there are any.
        choices: number of choices in the reply.
    """

    text: str
    reason: str | None
    tokens_in: int | None
    tokens_out: int | None
    weights: Weights | None
    choices: int


def read_completion(reply: dict[str, Any]) -> ServerReply:
    """Read the first choice of a completion; raise TransientError if there is none."""
    choice, choices = _choice(reply)
    text = choice.get("text")
    if not isinstance(text, str):
        raise TransientError("the reply has no text")
    return _make_reply(text, choice, choices, reply)


def read_chat(reply: dict[str, Any]) -> ServerReply:
    """Read the first choice of a chat; the text is empty if all tokens were spent on thinking."""
    choice, choices = _choice(reply)
    message = choice.get("message")
    if not isinstance(message, dict):
        raise TransientError("the reply has no message")
    text = message.get("content")
    if isinstance(text, list):
        text = "".join(str(part.get("text", "")) for part in text if isinstance(part, dict))
    if text is None and choice.get("finish_reason") is not None:
        text = ""
    if not isinstance(text, str):
        raise TransientError("the reply has no text")
    return _make_reply(text, choice, choices, reply)


def _choice(reply: dict[str, Any]) -> tuple[dict[str, Any], int]:
    choices = reply.get("choices")
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
        raise TransientError("the reply has no choices")
    if choices[0].get("finish_reason") == "content_filter":
        raise RefusedError("the server's filter withheld the reply")
    return choices[0], len(choices)


def _make_reply(
    text: str, choice: dict[str, Any], choices: int, reply: dict[str, Any]
) -> ServerReply:
    usage = reply.get("usage")
    usage = usage if isinstance(usage, dict) else {}
    reason = choice.get("finish_reason")
    return ServerReply(
        text=text,
        reason=reason if isinstance(reason, str) else None,
        tokens_in=as_count(usage.get("prompt_tokens")),
        tokens_out=as_count(usage.get("completion_tokens")),
        weights=_weights(choice.get("logprobs")),
        choices=choices,
    )


def _weights(reply: Any) -> Weights | None:
    """Read log-probabilities in the format of completions or of chats; servers mix them."""
    if not isinstance(reply, dict):
        return None
    rows = reply.get("content")
    if isinstance(rows, list):
        rows = [row for row in rows if isinstance(row, dict)]
        tokens: Any = [row.get("token") for row in rows]
        values: Any = [row.get("logprob") for row in rows]
    else:
        tokens, values = reply.get("tokens"), reply.get("token_logprobs")
    if not isinstance(tokens, list) or not isinstance(values, list) or len(tokens) != len(values):
        return None
    if not tokens or not all(isinstance(token, str) for token in tokens):
        return None
    return Weights(tuple(tokens), tuple(map(_logprob, values)))


def _logprob(value: Any) -> float | None:
    """Return a valid log-probability: finite and at most 0, up to rounding; else None."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if math.isfinite(value) and value <= LOGPROB_TOLERANCE else None


def tokens_of_end(tokens: Sequence[str], end: str) -> int | None:
    """Return how many of the last tokens form the end of a text, without one that begins before it.

    None if tokens are not shown as their text.
    """
    length = count = 0
    while length < len(end) and count < len(tokens):
        count += 1
        length += len(tokens[-count])
    joined = "".join(tokens[len(tokens) - count :])
    if not joined.endswith(end) or (not count and end):
        return None
    return count - (length > len(end))
