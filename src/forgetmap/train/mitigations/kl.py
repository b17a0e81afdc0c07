"""KL to the start: keep the distributions on old prompts, without labels.

At the positions of each old answer (those that predict one of its tokens, including the end token),
with distributions s of the start model and q of the trained model,

    forward   KL(s || q) = sum_v s(v) (log s(v) - log q(v))     covers all answers of the start
    reverse   KL(q || s) = sum_v q(v) (log q(v) - log s(v))     avoids answers the start never gives

and the penalty is the mean over the positions of a batch. Prompts without a completion get one from
the start model, sampled once; given completions are used, unless `answers="start"`.

The start model is the model at the call of `protect`. Its log-probabilities are computed once and
stored: there is no second model, and a step costs one forward and backward pass of `batch_size`
short sequences. Exact storage takes 4 bytes per position and token of the vocabulary (2 with
`half`). With `top_k`, only the k most likely tokens are stored and all others are merged into one:
the penalty is then a lower bound of the KL (data processing inequality), at 8 k bytes per position.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import torch

from forgetmap.errors import ModelError, UsageError
from forgetmap.train.examples import ExampleSource, TokenExample, context_of
from forgetmap.train.mitigations import mitigation as base
from forgetmap.train.mitigations.mitigation import Mitigation, Protection
from forgetmap.train.mitigations.old_batches import (
    ExampleOrder,
    collate,
    position_count,
    predict,
    survey,
)
from forgetmap.train.mitigations.sampling import sample_answers

Direction = Literal["forward", "reverse"]
LOWEST = -1e4
"""Log-probability of an impossible token; finite, so that its product with 0 is 0."""


@dataclass(frozen=True)
class KLToStart(Mitigation):
    """Penalise KL to the start model on old prompts.

    Attributes:
        prompts: rows with `prompt`, with or without a completion.
        weight: weight of the mean KL per position, relative to the loss of the trainer.
        direction: `forward` KL(start||model) or `reverse` KL(model||start).
        batch_size: prompts per optimizer step and process.
        every: add the penalty only every this many steps, with a weight this many times higher.
        answers: `auto` uses given completions; `start` samples all from the start model.
        positions: `answer`, or `all` to also compare the distributions inside prompts.
        max_tokens: maximum length of a sampled answer.
        temperature: sampling temperature; 0 is greedy.
        top_k: number of tokens stored per start distribution; the others are merged into one.
        half: store start log-probabilities in float16.
        memory_gib: maximum memory of the start log-probabilities.
        eos: end given completions with the end-of-sequence token.
        seed: random seed of answers and of the order of prompts.
    """

    kind: ClassVar[str] = "kl_to_start"

    prompts: ExampleSource
    weight: float = 1.0
    direction: Direction = "forward"
    batch_size: int = 16
    every: int = 1
    answers: Literal["auto", "start"] = "auto"
    positions: Literal["answer", "all"] = "answer"
    max_tokens: int = 32
    temperature: float = 1.0
    top_k: int | None = None
    half: bool = False
    memory_gib: float = 2.0
    eos: bool = True
    seed: int = 0

    def __post_init__(self) -> None:
        base.check_not_negative(weight=self.weight, temperature=self.temperature)
        base.check_above_zero(
            batch_size=self.batch_size,
            every=self.every,
            max_tokens=self.max_tokens,
            top_k=self.top_k,
            memory_gib=self.memory_gib,
        )
        base.check_choice("direction", self.direction, ("forward", "reverse"))
        base.check_choice("answers", self.answers, ("auto", "start"))
        base.check_choice("positions", self.positions, ("answer", "all"))

    def apply(self, run: Protection) -> None:
        """Compute answers and distributions of the start model now; add a penalty at each step."""
        examples = answered(
            run,
            run.read(self.prompts, eos=self.eos),
            again=self.answers == "start",
            max_tokens=self.max_tokens,
            temperature=self.temperature,
            seed=self.seed,
        )
        whole = self.positions == "all"
        start = StartDistributions.of(
            run.model, examples, run.device, whole=whole, top_k=self.top_k, half=self.half,
            memory_gib=self.memory_gib,
        )  # fmt: skip
        order = ExampleOrder(len(examples), self.batch_size, self.seed)

        def penalty(model: Any) -> torch.Tensor | None:
            if run.step % self.every:
                return None
            chosen = order.at(run.step // self.every, run.rank, run.processes)
            batch = collate([examples[at] for at in chosen], run.device, whole=whole)
            return start.divergence(predict(model, batch), chosen, self.direction).mean()

        run.add_penalty(self.kind, penalty, self.weight * self.every)


def answered(
    run: Protection,
    examples: Sequence[TokenExample],
    *,
    again: bool = False,
    max_tokens: int = 32,
    temperature: float = 1.0,
    seed: int = 0,
) -> list[TokenExample]:
    """Return examples in which the current model has written missing (with `again`, all) answers.

    Raises:
        UsageError: a prompt leaves no room for an answer.
    """
    indices = [at for at, one in enumerate(examples) if again or not one.is_answered]
    prompts = [examples[at].ids[: examples[at].begin] for at in indices]
    context = context_of(run.model, run.tokenizer)
    for at, prompt in zip(indices, prompts, strict=True):
        if context is not None and len(prompt) + max_tokens > context:
            place = examples[at].place
            raise UsageError(
                f"{place.file}, line {place.line}: {len(prompt)} prompt tokens and {max_tokens} "
                f"answer tokens exceed the context length {context} of the model",
                hint="shorten the prompt, remove it, or lower max_tokens.",
            )
    answers = sample_answers(
        run.model, prompts, run.tokenizer, max_tokens=max_tokens, temperature=temperature, seed=seed
    )
    full = list(examples)
    for at, prompt, answer in zip(indices, prompts, answers, strict=True):
        full[at] = replace(examples[at], ids=tuple(prompt) + tuple(answer), begin=len(prompt))
    return full


# ----------------------------------------------------------------------------------- distributions


class StartDistributions:
    """Log-probabilities of the start model at the positions of each example.

    Attributes:
        logs: (all positions, vocabulary), or (all positions, k + 1) with the merged tokens last.
        tokens: ids of the stored tokens; None for the whole vocabulary.
        offsets: index of the first position of each example.
        vocabulary: vocabulary size of the start model.
    """

    def __init__(
        self, logs: torch.Tensor, tokens: torch.Tensor | None, offsets: list[int], vocabulary: int
    ) -> None:
        self.logs, self.tokens, self.offsets, self.vocabulary = logs, tokens, offsets, vocabulary

    @classmethod
    def of(
        cls,
        model: Any,
        examples: Sequence[TokenExample],
        device: torch.device | str,
        *,
        whole: bool = False,
        top_k: int | None = None,
        half: bool = False,
        memory_gib: float = 2.0,
    ) -> StartDistributions:
        """Compute the distributions of the current model.

        Raises:
            UsageError: they would exceed the memory limit.
            ModelError: they are not finite.
        """
        sizes = [position_count(example, whole=whole) for example in examples]
        vocabulary = _vocabulary(model)
        kept = None if top_k is None or top_k >= vocabulary else top_k
        _check_memory(sum(sizes), vocabulary, kept, memory_gib, half=half)
        logs, tokens = [], []
        for logits in survey(model, examples, device, whole=whole):
            log, token = summarise(logits.log_softmax(-1), kept)
            logs.append(log.clamp(min=LOWEST).to(torch.float16 if half else log.dtype))
            tokens.append(token)
        offsets = [0, *torch.tensor(sizes).cumsum(0).tolist()]
        chosen = None if kept is None else torch.cat([one for one in tokens if one is not None])
        return cls(torch.cat(logs), chosen, offsets, logits.shape[-1])

    def rows(self, chosen: Sequence[int]) -> torch.Tensor:
        """Return the indices of the positions of some examples, in the order of `collate`."""
        parts = [torch.arange(self.offsets[at], self.offsets[at + 1]) for at in chosen]
        return torch.cat(parts).to(self.logs.device)

    def divergence(
        self, logits: torch.Tensor, chosen: Sequence[int], direction: Direction
    ) -> torch.Tensor:
        """Return the KL at each position of some examples, from the logits of the trained model.

        Raises:
            ModelError: the vocabulary differs from that of the start model.
        """
        if logits.shape[-1] != self.vocabulary:
            raise ModelError(
                f"the model predicts {logits.shape[-1]} tokens, but {self.vocabulary} at the start",
                hint="resize the embeddings before fm.protect, not after.",
            )
        rows = self.rows(chosen)
        start = self.logs[rows].to(logits.dtype)
        logs = logits.log_softmax(-1)
        if self.tokens is not None:
            logs = in_buckets(logs, self.tokens[rows])
        if direction == "forward":
            return (start.exp() * (start - logs)).sum(-1)
        return (logs.exp() * (logs - start)).sum(-1)


def summarise(logs: torch.Tensor, top_k: int | None) -> tuple[torch.Tensor, torch.Tensor | None]:
    """Return the k largest log-probabilities with that of all others merged, and the token ids."""
    if top_k is None:
        return logs, None
    tokens = logs.topk(top_k, dim=-1).indices
    return in_buckets(logs, tokens), tokens


def in_buckets(logs: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
    """Return log-probabilities of the given tokens, and of all others merged."""
    others = logs.scatter(-1, tokens, float("-inf")).logsumexp(-1, keepdim=True)
    return torch.cat([logs.gather(-1, tokens), others.clamp(min=LOWEST)], dim=-1)


def _vocabulary(model: Any) -> int:
    head = model.get_output_embeddings()
    return int((head or model.get_input_embeddings()).weight.shape[0])


def _check_memory(
    positions: int, vocabulary: int, top_k: int | None, limit_gib: float, *, half: bool
) -> None:
    width = 2 if half else 4
    each = vocabulary * width if top_k is None else (top_k + 1) * width + 8 * top_k
    needed = positions * each / 2**30
    if needed > limit_gib:
        raise UsageError(
            f"the start model's log-probabilities at {positions} positions would take "
            f"{needed:.1f} GiB, more than {limit_gib:g}",
            hint="use top_k=64, fewer prompts, or a higher memory_gib.",
        )
