"""Which value a parameter has for a tensor: by name, by layer, by model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from forgetmap.errors import FieldError
from forgetmap.merge.method import Method, Parameter
from forgetmap.merge.recipe.model import ModelPart, Settings, Value


@dataclass(frozen=True, slots=True)
class Scope:
    """A tensor of the result, and the settings around it.

    Attributes:
        tensor: its name.
        position: of its layer, from 0 for the first to 1 for the last; 0 outside of all layers.
        settings: the nearest first; those of a model come before all of them.
    """

    tensor: str
    position: float
    settings: tuple[Settings, ...]


def values_for(method: Method, scope: Scope, parts: Sequence[ModelPart]) -> Mapping[str, Any]:
    """The value of every parameter of a method; one for each model where it takes that."""
    values: dict[str, Any] = {}
    for parameter in method.parameters:
        if parameter.per_model:
            values[parameter.name] = tuple(_value(parameter, scope, part) for part in parts)
        else:
            values[parameter.name] = _value(parameter, scope)
    return values


def _value(parameter: Parameter, scope: Scope, part: ModelPart | None = None) -> bool | float:
    nearest = (part.parameters,) if part else ()
    for settings in (*nearest, *scope.settings):
        for rule in settings.get(parameter.name, ()):
            if rule.fits(scope.tensor):
                value = interpolate(rule.value, scope.position)
                return bool(value) if parameter.flag else float(value)
    if parameter.default is None:
        model = f" of '{part.model}'" if part else ""
        raise FieldError(
            f"'{parameter.name}'{model} has no value for the tensor '{scope.tensor}'.",
            field=parameter.name,
            hint="give one, or add a rule without a filter to its list.",
        )
    return parameter.default


def interpolate(value: Value, position: float) -> bool | float:
    """A list of values is a line through points that are spread evenly from 0 to 1."""
    if not isinstance(value, tuple):
        return value
    if len(value) == 1:
        return value[0]
    step = min(int(position * (len(value) - 1)), len(value) - 2)
    start, stop = list(pairwise(value))[step]
    share = position * (len(value) - 1) - step
    # At the points themselves nothing is computed, so that they come out exactly.
    return start + share * (stop - start) if share not in {0.0, 1.0} else (stop if share else start)
