"""Conditions of a training method, checked for two models with a measured overlap."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from pydantic import ValidationError

from forgetmap.errors import FieldError, MissingInputError, UnreadableError, UsageError
from forgetmap.overlap.result import OverlapGroup, OverlapResult
from forgetmap.theory import (
    ConditionMethod,
    ConditionNumbers,
    ConditionReport,
    check_conditions,
    separation_of_overlap,
)

FILE = "overlap.json"
"""Name of the file in the folder of `forgetmap overlap --out`."""


def read_overlap(path: Path) -> OverlapResult:
    """Read the output of `forgetmap overlap --json`, or the folder of its `--out`."""
    file = path / FILE if path.is_dir() else path
    try:
        return OverlapResult.model_validate_json(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise MissingInputError(
            f"{file} cannot be read: {error.strerror}.",
            hint="pass the output file of `forgetmap overlap --json`.",
        ) from None
    except (UnicodeDecodeError, ValidationError):
        raise UnreadableError(
            f"{file} is not a result of forgetmap overlap.",
            hint="pass the complete output of `forgetmap overlap --json`.",
        ) from None


def conditions_of_overlap(
    result: OverlapResult,
    method: ConditionMethod,
    numbers: ConditionNumbers | None = None,
    group: str = "all",
) -> ConditionReport:
    """Check the conditions with the measured separation, and the measured old mass if known.

    Uses the upper bound of the overlap and the lower bound of the old mass: the side on which a
    condition fails first.

    Args:
        result: result of `forgetmap overlap`.
        method: as for `check_conditions`.
        numbers: all other numbers.
        group: group of prompts.
    """
    chosen = _group(result, group)
    overlap, mass = chosen.overlap, chosen.old_mass
    most = overlap.value if overlap.high is None else overlap.high
    if most is None:
        raise FieldError(
            f"the overlap of {group!r} is unknown: {overlap.reason}",
            field="overlap",
            hint="sample from both models, or use --separation.",
        )
    measured = mass.value if mass.low is None else mass.low
    base = numbers or ConditionNumbers()
    filled = replace(base, separation=separation_of_overlap(most), measured=measured)
    return check_conditions(method, filled)


def _group(result: OverlapResult, name: str) -> OverlapGroup:
    for group in result.groups:
        if group.name == name:
            return group
    names = ", ".join(group.name for group in result.groups)
    raise UsageError(f"there is no prompt group {name!r}", hint=f"choose one of {names}.")
