"""Settings of a single model, given in its name: `MODEL,stage=base,max_tokens=4096`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, get_args

from forgetmap._plugins import did_you_mean
from forgetmap.errors import UsageError
from forgetmap.evaluation.choices import Stage
from forgetmap.evaluation.settings import Settings, Style

_SETTING = re.compile(r"\s*\w+=[^,]*")
_READERS: Mapping[str, tuple[str, Callable[[str], Any]]] = {
    "stage": ("stage", str),
    "style": ("chat", str),
    "shots": ("shots", int),
    "max_tokens": ("max_new_tokens", int),
    "temperature": ("temperature", float),
    "top_p": ("top_p", float),
}
"""Settings of a single model: name -> field of `Settings`, and conversion of the text."""
_CHOICES = {"stage": get_args(Stage), "style": get_args(Style)}
_OPTIONS = {
    "stage": "--stage {}",
    "shots": "--shots {}",
    "max_tokens": "--max-new-tokens {}",
    "temperature": "--temperature {}",
    "top_p": "--top-p {}",
}
"""Options that set the same for all models; the style has one option per value."""


@dataclass(frozen=True, slots=True)
class AskedModel:
    """A model with its own settings.

    Attributes:
        model: name without the settings, or a live model.
        own: values by the names that users type.
    """

    model: Any
    own: Mapping[str, Any] = field(default_factory=dict)

    def settings(self, common: Settings | None) -> Settings:
        """Return the common settings, overridden by those of this model.

        Raises:
            UsageError: the protocol does not have this style.
        """
        settings = common or Settings()
        fields = {_READERS[name][0]: value for name, value in self.own.items()}
        if "style" in self.own:
            fields["chat"] = _is_chat(self.own["style"], settings)
        return replace(settings, **fields)


def split_model(model: Any) -> AskedModel:
    """Separate the name of a model from its own settings.

    Args:
        model: `MODEL,stage=base,style=few-shot,shots=3,max_tokens=4096,temperature=0,top_p=1`, with
            any of these settings. An existing folder of that name, or a value that is not a name,
            is not split.

    Raises:
        UsageError: there is no such setting or value, or it is set twice.
    """
    if not isinstance(model, str) or "," not in model or Path(model).expanduser().exists():
        return AskedModel(model)
    name, *parts = model.split(",")
    while parts and not _SETTING.fullmatch(parts[0]):
        name = f"{name},{parts.pop(0)}"
    own: dict[str, Any] = {}
    for part in parts:
        setting, value = _read(part.strip(), model)
        if setting in own:
            raise UsageError(f"{model!r} sets {setting} twice", hint=f"remove one {setting}=...")
        own[setting] = value
    return AskedModel(name, own)


def refuse_own_settings(models: Iterable[Any], why: str) -> None:
    """Refuse settings of single models, and name the option that sets them for all.

    Args:
        models: models as given by the user.
        why: the reason, for the message.

    Raises:
        UsageError: a model has its own settings.
    """
    for model in models:
        request = split_model(model)
        if request.own:
            options = " ".join(_option(name, value) for name, value in request.own.items())
            raise UsageError(
                f"{model!r} has its own settings, but {why}",
                hint=f"use {request.model}, and set {options} for all models.",
            )


def _option(name: str, value: Any) -> str:
    if name == "style":
        return "--chat" if value == "chat" else "--no-chat"
    return _OPTIONS[name].format(value)


def _read(part: str, model: str) -> tuple[str, Any]:
    name, equals, text = part.partition("=")
    if not equals or name not in _READERS:
        raise UsageError(
            f"{part!r} in {model!r} is not a setting of a single model",
            hint=f"{did_you_mean(name, _READERS)}the settings are {', '.join(_READERS)}.",
        )
    choices = _CHOICES.get(name)
    if choices is not None and text not in choices:
        raise UsageError(
            f"{part!r} in {model!r} is not a valid {name}",
            hint=f"use {name}={f' or {name}='.join(choices)}.",
        )
    try:
        return name, _READERS[name][1](text)
    except ValueError as error:
        raise UsageError(
            f"{part!r} in {model!r} is not a number", hint=f"use a number, such as {name}=1."
        ) from error


def _is_chat(style: Style, settings: Settings) -> bool:
    other = {"same": "few-shot", "published": "plain"}[settings.protocol]
    if style == other:
        raise UsageError(
            f"the protocol {settings.protocol} has no style {style}",
            hint="use plain with --protocol same, few-shot with --protocol published, and chat "
            "with both.",
        )
    return style == "chat"
