"""Capabilities of a server, probed at start-up.

Servers with the same interface differ: some silently ignore options, some return log-probabilities
that belong to the previous token. So every ability is tested: a count must agree with a limit, a
seed must reproduce a text, and the log-probabilities of a generated text must be the same when it
is read as a prompt.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from forgetmap.errors import ModelError, NetworkError
from forgetmap.evaluation.backends.base import Failure
from forgetmap.evaluation.backends.servers.client import Client, Exchange
from forgetmap.evaluation.backends.servers.replies import (
    LOGPROB_TOLERANCE,
    ServerReply,
    Weights,
    read_chat,
    read_completion,
    tokens_of_end,
)

OPENINGS = (
    "Once upon a time there was a river that",
    "The answer to the question is",
    "Every morning the dog and the cat",
)
PROBE_TOKENS = 8
"""Number of tokens of a test generation."""
HIGH_TEMPERATURE = 1.5
"""Temperature at which two seeds almost never generate the same text."""
MAX_FAULTS = 3
"""Number of server errors (500 and above) after which a request counts as unsupported."""
NEUTRAL_SAMPLING = {"top_k": -1, "min_p": 0.0, "repetition_penalty": 1.0, "repeat_penalty": 1.0}
"""No truncation and no penalties; explicit, because servers and models have other defaults."""

ABILITIES = (
    "chat", "completions", "counts", "greedy", "samples", "whole", "seed", "n", "logprobs", "echo",
)  # fmt: skip
CONSEQUENCES = {
    "counts": "Token counts are not recorded, and the cost is unknown",
    "greedy": (
        "Two runs of the same model may differ, and part of the measured forgetting may be due "
        "to this"
    ),
    "whole": "Its defaults may truncate or change the distribution that answers are sampled from",
    "seed": "Sampled answers are valid, but cannot be reproduced",
}
"""Consequence of each unreliable ability for a run."""


@dataclass(slots=True)
class ServerAbilities:
    """Results of probing.

    Attributes:
        faults: reason by ability, for each unreliable one.
        limit: name of the field for the maximum number of tokens in chats.
        seeds: whether requests may contain a seed.
    """

    faults: dict[str, str] = field(default_factory=lambda: {"whole": "was not tested"})
    limit: str = "max_tokens"
    seeds: bool = True

    def can(self, ability: str) -> bool:
        """Whether an ability is reliable."""
        return ability not in self.faults

    @property
    def abilities(self) -> dict[str, bool]:
        """Whether each ability is reliable."""
        return {name: self.can(name) for name in ABILITIES}

    @property
    def more(self) -> dict[str, float]:
        """Request fields that disable changes to probabilities by the server."""
        return NEUTRAL_SAMPLING if self.can("whole") else {}

    def note(self, ability: str) -> str | None:
        """Return a sentence on an unreliable ability and its consequence."""
        if self.can(ability) or ability not in CONSEQUENCES:
            return None
        return f"The server {self.faults[ability]}. {CONSEQUENCES[ability]}."


def probe(client: Client) -> ServerAbilities:
    """Probe all abilities with a few short requests.

    Raises:
        ModelError: the server supports neither completions nor chats.
        ForgetmapError: the server does not answer.
    """
    abilities = ServerAbilities()
    for _, outcome in client.run_all([lambda exchange: _try_all(exchange, abilities)]):
        if isinstance(outcome, Failure):
            raise ModelError(
                f"unexpected reply of {client.base}: {outcome}",
                hint="check the address (it usually ends in /v1) and the log of the server.",
            )
    if not abilities.can("chat") and not abilities.can("completions"):
        raise ModelError(
            f"{client.base} supports neither completions nor chat with {client.model}: it "
            f"{abilities.faults['completions']}; it {abilities.faults['chat']}.",
            hint="check the address (it usually ends in /v1) and the log of the server.",
        )
    return abilities


def check_answers(client: Client, abilities: ServerAbilities) -> None:
    """Check that the server still answers.

    Raises:
        NetworkError: it does not.
    """
    request = _completion if abilities.can("completions") else _chat
    for _, outcome in client.run_all(
        [lambda exchange: request(exchange, abilities, OPENINGS[0], temperature=0.0)]
    ):
        if isinstance(outcome, Failure):
            raise NetworkError(
                f"the server stopped responding: {outcome}",
                hint="check the server, then run the same command again; all answers so far are "
                "kept.",
            )


async def _try_all(exchange: Exchange, abilities: ServerAbilities) -> None:
    await _try_chat(exchange, abilities)
    reply = await _try_completions(exchange, abilities)
    request = _completion if reply is not None else _chat
    if reply is None and not abilities.can("chat"):
        return
    await _try_whole(exchange, abilities, request)
    await _try_sampling(exchange, abilities, request)
    if reply is None:
        for name in ("logprobs", "echo"):
            abilities.faults[name] = "does not support completions"
        return
    await _try_weights(exchange, abilities)


async def _try_chat(exchange: Exchange, abilities: ServerAbilities) -> None:
    """Test chats, and the name of the token limit."""
    for limit in ("max_tokens", "max_completion_tokens"):
        abilities.limit = limit
        try:
            reply = await _chat(exchange, abilities, OPENINGS[0], temperature=0.0)
        except (Failure, ModelError) as error:
            abilities.faults["chat"] = _refusal("does not support chat", error)
        else:
            abilities.faults.pop("chat", None)
            _check_counts(abilities, reply)
            return


async def _try_completions(exchange: Exchange, abilities: ServerAbilities) -> ServerReply | None:
    """Test completions, token counts, and whether greedy decoding is deterministic."""
    try:
        first = await _completion(exchange, abilities, OPENINGS[0], temperature=0.0)
        again = await _completion(exchange, abilities, OPENINGS[0], temperature=0.0)
    except (Failure, ModelError) as error:
        abilities.faults["completions"] = _refusal("does not support completions", error)
        if abilities.can("chat"):
            await _try_greedy_chat(exchange, abilities)
        return None
    _check_counts(abilities, first)
    _check_greedy(abilities, first, again)
    return first


async def _try_greedy_chat(exchange: Exchange, abilities: ServerAbilities) -> None:
    first = await _chat(exchange, abilities, OPENINGS[1], temperature=0.0)
    again = await _chat(exchange, abilities, OPENINGS[1], temperature=0.0)
    _check_greedy(abilities, first, again)


def _check_greedy(abilities: ServerAbilities, first: ServerReply, again: ServerReply) -> None:
    if first.text != again.text:
        abilities.faults["greedy"] = "answers the same request differently at temperature 0"


def _check_counts(abilities: ServerAbilities, reply: ServerReply) -> None:
    """Check that a truncated text has as many tokens as the limit."""
    if not reply.tokens_in or reply.tokens_out is None:
        abilities.faults["counts"] = "does not return token counts"
    elif reply.tokens_out > PROBE_TOKENS or (
        reply.reason == "length" and reply.tokens_out != PROBE_TOKENS
    ):
        abilities.faults["counts"] = (
            f"reports {reply.tokens_out} output tokens with a limit of {PROBE_TOKENS}"
        )


async def _try_whole(exchange: Exchange, abilities: ServerAbilities, request: Any) -> None:
    """Test whether the server accepts the fields that leave probabilities unchanged."""
    try:
        await request(exchange, abilities, OPENINGS[0], temperature=1.0, **NEUTRAL_SAMPLING)
    except (Failure, ModelError) as error:
        abilities.faults["whole"] = _refusal(
            f"does not accept {', '.join(NEUTRAL_SAMPLING)}", error
        )
    else:
        del abilities.faults["whole"]


async def _try_sampling(exchange: Exchange, abilities: ServerAbilities, request: Any) -> None:
    """Test whether seeds reproduce texts, and whether one request can return several answers."""
    try:
        texts = [
            (
                await request(
                    exchange, abilities, OPENINGS[0], temperature=HIGH_TEMPERATURE, seed=seed
                )
            ).text
            for seed in (1, 1, 2, 3)
        ]
    except (Failure, ModelError) as error:
        abilities.faults["seed"] = _refusal("does not support sampling with a seed", error)
        await _try_without_seed(exchange, abilities, request)
    else:
        if texts[0] != texts[1]:
            abilities.faults["seed"] = "returns different answers with the same seed"
        elif len(set(texts)) == 1:
            abilities.faults["seed"] = (
                f"returns identical answers with different seeds at temperature {HIGH_TEMPERATURE}"
            )
            abilities.faults["samples"] = abilities.faults["seed"]
    try:
        several = await request(exchange, abilities, OPENINGS[0], temperature=1.0, n=2)
    except (Failure, ModelError) as error:
        abilities.faults["n"] = _refusal("does not return two answers per request", error)
    else:
        if several.choices != 2:  # the requested number
            abilities.faults["n"] = f"returns {several.choices} answer instead of two"


async def _try_without_seed(exchange: Exchange, abilities: ServerAbilities, request: Any) -> None:
    abilities.seeds = False
    try:
        texts = [
            (await request(exchange, abilities, OPENINGS[0], temperature=HIGH_TEMPERATURE)).text
            for _ in range(3)
        ]
    except (Failure, ModelError) as error:
        abilities.faults["samples"] = _refusal("does not support sampling", error)
    else:
        if len(set(texts)) == 1:
            abilities.faults["samples"] = (
                f"returns identical answers at temperature {HIGH_TEMPERATURE}"
            )


async def _try_weights(exchange: Exchange, abilities: ServerAbilities) -> None:
    """Test whether log-probabilities of a text agree between generation and prompt."""
    compared = 0
    for seed, opening in enumerate(OPENINGS, start=1):
        try:
            more = {"seed": seed} if abilities.seeds else {}
            reply = await _completion(
                exchange, abilities, opening, temperature=1.0, logprobs=1, **more
            )
        except (Failure, ModelError) as error:
            abilities.faults["logprobs"] = _refusal("does not return log-probabilities", error)
            abilities.faults["echo"] = abilities.faults["logprobs"]
            return
        fault = _fault_of_writing(reply, abilities)
        if fault:
            abilities.faults["logprobs"] = abilities.faults["echo"] = fault
            return
        try:
            read = await read_echo(exchange, opening + reply.text)
        except (Failure, ModelError) as error:
            abilities.faults["echo"] = _refusal("does not return prompt log-probabilities", error)
            return
        fault, fit = _fault_of_reading(reply, read)
        if fault:
            abilities.faults["echo"] = fault
            return
        compared += fit
    if not compared:
        abilities.faults["echo"] = (
            "tokenises a text differently in the prompt than in the completion"
        )


def _fault_of_writing(wrote: ServerReply, abilities: ServerAbilities) -> str | None:
    if wrote.weights is None:
        return "returns no log-probabilities of the completion"
    if any(value is None for value in wrote.weights.logprobs):
        return "returns missing or positive log-probabilities of the completion"
    # An end token may be counted without being shown.
    if abilities.can("counts") and abs(len(wrote.weights.tokens) - (wrote.tokens_out or 0)) > 1:
        return "returns log-probabilities of other tokens than it counts"
    return None


def _fault_of_reading(wrote: ServerReply, read: Weights | None) -> tuple[str | None, bool]:
    """Return the fault, if any, and whether the two could be compared."""
    if read is None:
        return "does not return prompt log-probabilities (it ignores echo)", False
    reply = wrote.weights or Weights((), ())
    length = tokens_of_end(read.tokens, wrote.text) or 0
    end = read.behind(len(read.tokens) - length)
    # An end token is generated, but is not part of the text.
    start = reply.first(length)
    if start.tokens != end.tokens or not _varied(start):
        return None, False
    if _agree(start, end):
        return None, True
    if _agree(start.behind(1), end) or _agree(start, end.behind(1)):
        return "returns prompt log-probabilities that are shifted by one token", False
    return "returns different log-probabilities of the same text in prompt and completion", False


def _varied(weights: Weights) -> bool:
    """Whether log-probabilities vary enough between tokens to detect a shift."""
    values = [value for value in weights.logprobs if value is not None]
    return len(values) > 1 and max(values) - min(values) > 4 * LOGPROB_TOLERANCE


def _agree(one: Weights, other: Weights) -> bool:
    """Whether the common log-probabilities are equal within the tolerance."""
    pairs = list(zip(one.logprobs, other.logprobs, strict=False))
    return bool(pairs) and all(
        a is not None and b is not None and abs(a - b) <= LOGPROB_TOLERANCE for a, b in pairs
    )


async def read_echo(exchange: Exchange, text: str) -> Weights | None:
    """Return the tokens of a text with log-probabilities; None if the server does not echo."""
    body = {"prompt": text, "max_tokens": 1, "temperature": 0.0, "echo": True, "logprobs": 1}
    reply = await exchange.ask(
        "completions", {"model": exchange.client.model, **body}, read_completion, faults=MAX_FAULTS
    )
    if reply.weights is None or not reply.text.startswith(text):
        return None
    tokens = reply.weights.tokens
    # One token is generated after the text, unless the model ends there.
    for length in (1, 0):
        if "".join(tokens[: len(tokens) - length]).endswith(text):
            return reply.weights.first(len(tokens) - length)
    return reply.weights.first(len(tokens) - (1 if reply.tokens_out is None else reply.tokens_out))


async def _completion(
    exchange: Exchange, abilities: ServerAbilities, text: str, **more: Any
) -> ServerReply:
    body = {
        "model": exchange.client.model,
        "prompt": text,
        "max_tokens": PROBE_TOKENS,
        "top_p": 1.0,
    }
    return await exchange.ask(
        "completions", body | abilities.more | more, read_completion, faults=MAX_FAULTS
    )


async def _chat(
    exchange: Exchange, abilities: ServerAbilities, text: str, **more: Any
) -> ServerReply:
    messages = [{"role": "user", "content": text}]
    body = {
        "model": exchange.client.model,
        "messages": messages,
        abilities.limit: PROBE_TOKENS,
        "top_p": 1.0,
    }
    return await exchange.ask(
        "chat/completions", body | abilities.more | more, read_chat, faults=MAX_FAULTS
    )


def _refusal(what: str, error: Exception) -> str:
    reply = error.message if isinstance(error, ModelError) else str(error)
    return f"{what} ({reply.rstrip('.')})"
