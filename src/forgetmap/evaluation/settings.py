"""Settings of an evaluation: the protocol and its parameters."""

from __future__ import annotations

import hashlib
import json
import math
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from forgetmap.errors import UsageError
from forgetmap.evaluation.backends.base import Backend, Decoding
from forgetmap.evaluation.choices import ProtocolName, Scoring, Stage

Style = Literal["plain", "chat", "few-shot"]
"""Plain prompt with format lessons; chat template; worked examples of the task itself."""

SHORT, FREE, LONG = 64, 1024, 32_768
"""Maximum number of new tokens: of a one-line answer, of free form, and with reasoning."""
SHOTS: dict[Style, int] = {"plain": 3, "chat": 0, "few-shot": 5}
"""Worked examples before a question, if the task has as many; most of the study have three."""
NEXT_QUESTION = ("\nQuestion:",)


BASE_IN_CHAT = (
    "a base model was evaluated in a chat, for which it was not trained: apparent forgetting "
    "may be due to the answer format (published: base models get few-shot prompts without a "
    "template)."
)
TUNED_FEW_SHOT = (
    "a tuned model was evaluated few-shot without its chat template (published: tuned models "
    "get zero-shot chat prompts)."
)


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of an evaluation; None means the default of the protocol.

    Attributes:
        protocol: `same` uses the same prompts for every model; `published` follows Harmon et al.
            (2026): few-shot prompts for base models, zero-shot chat prompts with reasoning for
            tuned models. It needs `stage`, because base models may have chat templates too.
        stage: the type of the model, `base` or `tuned`.
        scoring: how multiple choice is scored; `auto` is by log-likelihood with `same`, by
            generated answers with `published`.
        chat: format every question with the chat template.
        system_prompt: system message of a chat.
        shots: number of worked examples before a question.
        temperature: sampling temperature; 0 is greedy.
        top_p: probability mass of nucleus sampling.
        max_new_tokens: maximum number of tokens per response.
        repeats: number of answers per item.
        seed: random seed of the first repeat; each further repeat adds 1.
    """

    protocol: ProtocolName = "same"
    scoring: Scoring = "auto"
    chat: bool | None = None
    system_prompt: str | None = None
    shots: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    max_new_tokens: int | None = None
    repeats: int | None = None
    seed: int = 0
    stage: Stage | None = None

    def __post_init__(self) -> None:
        faults = {
            "--temperature": self.temperature is not None and not 0 <= self.temperature < math.inf,
            "--top-p": self.top_p is not None and not 0 < self.top_p <= 1,
            "--repeats": self.repeats is not None and self.repeats < 1,
            "--shots": self.shots is not None and self.shots < 0,
            "--max-new-tokens": self.max_new_tokens is not None and self.max_new_tokens < 1,
        }
        for name, fault in faults.items():
            if fault:
                raise UsageError(
                    f"{name} is out of range",
                    hint="use a finite temperature of 0 or more, top-p above 0 and at most 1, "
                    "repeats and max-new-tokens of 1 or more, and shots of 0 or more.",
                )

    @property
    def notes(self) -> tuple[str, ...]:
        """Warnings for readers: the prompt style is unusual for the stage of the model."""
        if self.stage == "base" and self.chat:
            return (BASE_IN_CHAT,)
        if self.stage == "tuned" and self.protocol == "published" and self.chat is False:
            return (TUNED_FEW_SHOT,)
        return ()


@dataclass(frozen=True, slots=True)
class ResolvedSettings:
    """Settings of one model with all defaults filled in.

    Items of tasks with scorers are used as they are and answered in free form: `free` is their
    decoding, `decoding` that of the others.
    """

    protocol: ProtocolName
    style: Style
    by_likelihood: bool
    template_hash: str | None
    system_prompt: str | None
    shots: int
    decoding: Decoding
    free: Decoding
    repeats: int
    seed: int
    stage: Stage | None = None
    notes: tuple[str, ...] = ()

    @property
    def reasons(self) -> bool:
        """Whether the model is to reason before it answers."""
        return self.protocol == "published"

    def fingerprint(self, **more: Any) -> str:
        """Return a fingerprint of the settings."""
        # Unset values are left out, so that fingerprints of older runs do not change.
        facts = {name: value for name, value in asdict(self).items() if name != "notes"}
        if self.stage is None:
            del facts["stage"]
        text = json.dumps(facts | more, sort_keys=True, default=str)
        return hashlib.sha256(text.encode()).hexdigest()[:16]


def resolve(settings: Settings, backend: Backend) -> ResolvedSettings:
    """Fill in the defaults of the protocol for this model.

    Raises:
        UsageError: chat was requested, but the model has no chat template; or the protocol needs
            the stage of the model, and it is not given.
    """
    published = settings.protocol == "published"
    style = find_style(settings)
    if style == "chat" and not backend.has_chat_template:
        raise UsageError(
            "the model has no chat template",
            hint="remove --chat, or use a model whose tokenizer has a chat template."
            if settings.chat
            else "evaluate this tuned model without one: MODEL,stage=tuned,style=few-shot.",
        )
    if settings.system_prompt is not None and style != "chat":
        raise UsageError(
            "a system prompt needs a chat", hint="add --chat, or remove --system-prompt."
        )
    resolved = ResolvedSettings(
        protocol=settings.protocol,
        style=style,
        by_likelihood=not published and style == "plain"
        if settings.scoring == "auto"
        else settings.scoring == "loglikelihood",
        template_hash=backend.template_hash if style == "chat" else None,
        system_prompt=settings.system_prompt,
        shots=_or(settings.shots, SHOTS[style]),
        decoding=(decoding := _decoding(settings, style, published=published)),
        free=_free(decoding, settings),
        repeats=_or(settings.repeats, 3 if published else 1),
        seed=settings.seed,
        stage=settings.stage,
        notes=settings.notes,
    )
    return _check_sampling(resolved)


def find_style(settings: Settings, model: str = "the model", *, alike: bool = False) -> Style:
    """Return the prompt style: as given, else that of the protocol for models of this stage.

    Args:
        settings: settings of the evaluation.
        model: name of the model, for the error.
        alike: whether all models must have the same settings.

    Raises:
        UsageError: the protocol needs the stage, and it is not given. A chat template does not show
            it: base models may have one.
    """
    if settings.protocol == "same":
        return "chat" if settings.chat else "plain"
    if settings.chat is None and settings.stage is None:
        raise UsageError(
            f"the protocol published needs to know whether {model} is a base or a tuned model",
            hint="add --stage base or --stage tuned"
            + ("." if alike else "; for a single model, write MODEL,stage=base."),
        )
    is_chat = settings.stage == "tuned" if settings.chat is None else settings.chat
    return "chat" if is_chat else "few-shot"


def _decoding(settings: Settings, style: Style, *, published: bool) -> Decoding:
    stop = {"plain": ("\n",), "few-shot": NEXT_QUESTION, "chat": ()}[style]
    return Decoding(
        temperature=_or(settings.temperature, 0.6 if published else 0.0),
        top_p=_or(settings.top_p, 0.95 if published else 1.0),
        max_new_tokens=_or(settings.max_new_tokens, LONG if published else SHORT),
        stop=stop,
    )


def _free(decoding: Decoding, settings: Settings) -> Decoding:
    """Return the decoding of free-form answers: no stop text, and more tokens."""
    room = _or(settings.max_new_tokens, max(FREE, decoding.max_new_tokens))
    return replace(decoding, stop=(), max_new_tokens=room)


def _check_sampling(resolved: ResolvedSettings) -> ResolvedSettings:
    """Refuse repeats of greedy answers; with a temperature, do not use log-likelihoods."""
    if resolved.repeats > 1 and resolved.decoding.temperature == 0:
        raise UsageError(
            f"{resolved.repeats} greedy answers to an item would be identical",
            hint="set --temperature above 0, or remove --repeats.",
        )
    if resolved.by_likelihood and resolved.decoding.temperature > 0:
        return replace(resolved, by_likelihood=False)
    return resolved


def _or(value: Any, default: Any) -> Any:
    return default if value is None else value
