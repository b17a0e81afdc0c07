"""Mitigations stored as JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from forgetmap.errors import FieldError, MissingInputError, UnreadableError
from forgetmap.train.mitigations.ema import EMAWeights, WiSEFT
from forgetmap.train.mitigations.ewc import EWC
from forgetmap.train.mitigations.grpo import GRPOWithKL
from forgetmap.train.mitigations.kl import KLToStart
from forgetmap.train.mitigations.l2sp import L2SP
from forgetmap.train.mitigations.lora import LoRA
from forgetmap.train.mitigations.margin import MarginPenalty
from forgetmap.train.mitigations.mitigation import Mitigation
from forgetmap.train.mitigations.oapl import OAPL
from forgetmap.train.mitigations.onpolicy import OnPolicyReplay
from forgetmap.train.mitigations.projection import GradientProjection
from forgetmap.train.mitigations.replay import Replay, SyntheticReplay
from forgetmap.train.mitigations.sdft import SDFT
from forgetmap.train.mitigations.ttt_discover import TTTDiscover

KINDS: dict[str, type[Mitigation]] = {
    one.kind: one
    for one in (
        EMAWeights, EWC, GRPOWithKL, GradientProjection, KLToStart, L2SP, LoRA, MarginPenalty,
        OAPL, OnPolicyReplay, Replay, SDFT, SyntheticReplay, TTTDiscover, WiSEFT,
    )
}  # fmt: skip
"""Mitigations by the value of `mitigation` in JSON."""


def load_mitigations(path: str | Path) -> list[Mitigation]:
    """Load mitigations from a JSON file: an object as written by `to_json`, or a list of them.

    Raises:
        InputError: the file cannot be read, or an entry is unknown, misspelt or of the wrong kind.
    """
    name = str(path)
    try:
        content = json.loads(Path(path).read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise MissingInputError(
            "the file does not exist",
            hint="create it: Path(...).write_text(protection.to_json()).",
            file=name,
        ) from error
    except (OSError, ValueError) as error:
        raise UnreadableError(
            f"invalid JSON: {error}", hint="create it with `to_json()`.", file=name
        ) from error
    entries = content if isinstance(content, list) else [content]
    return [read_mitigation(entry, name) for entry in entries]


def read_mitigation(entry: Any, file: str = "mitigation") -> Mitigation:
    """Create a mitigation from parsed JSON.

    Raises:
        FieldError: an entry is unknown, misspelt or of the wrong kind.
    """
    kind = entry.get("mitigation") if isinstance(entry, Mapping) else None
    if kind not in KINDS:
        raise FieldError(
            f"there is no mitigation {kind!r}",
            hint=f"choose one of {', '.join(sorted(KINDS))}.",
            file=file,
            field="mitigation",
        )
    config = KINDS[kind]
    names = [field.name for field in fields(config)]
    values = {name: value for name, value in entry.items() if name != "mitigation"}
    for name in values:
        if name not in names:
            raise FieldError(
                f"{kind} has no option {name!r}",
                hint=f"its options are {', '.join(names)}.",
                file=file,
                field=name,
            )
    try:
        return TypeAdapter(config).validate_python(values)
    except ValidationError as error:
        first = error.errors()[0]
        place = str(first["loc"][0]) if first["loc"] else kind
        raise FieldError(
            first["msg"].removeprefix("Value error, ").partition("\n")[0],
            hint=f"see the attributes of {config.__name__}.",
            file=file,
            field=place,
        ) from error
