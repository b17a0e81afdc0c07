"""Validation of a recipe for its method: names, types, limits, number of models."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from forgetmap._plugins import did_you_mean
from forgetmap.errors import FieldError, UsageError
from forgetmap.merge.method import Method, Parameter
from forgetmap.merge.recipe.model import ParameterRule, Recipe, settings_of
from forgetmap.merge.recipe.yaml_file import KeyPath
from forgetmap.merge.registry import find_method

MakeError = Callable[[str, KeyPath, str], FieldError]
"""Builds an error from a message, its location, and a hint."""


def error_without_file(message: str, key_path: KeyPath, hint: str) -> FieldError:
    """Build an error about a recipe that was not read from a file."""
    return FieldError(message, field=".".join(map(str, key_path)), hint=hint)


def check_recipe(recipe: Recipe, make_error: MakeError = error_without_file) -> Method:
    """Return the method of a recipe, and check that the recipe fits it.

    Raises:
        FieldError: it does not fit.
    """
    try:
        method = find_method(recipe.method)
    except UsageError as error:
        raise make_error(error.message, ("method",), error.hint) from error
    _check_base(recipe, method, make_error)
    for key_path, parts in _merged_together(recipe):
        others = [part for part in parts if method.base == "ignored" or part != recipe.base]
        _check_count(method, len(others), make_error, key_path)
    for key_path, settings in settings_of(recipe):
        for name, setting in settings.items():
            parameter = _find_parameter(method, name, make_error, (*key_path, name))
            if not parameter.per_model and ("sources" in key_path or "models" in key_path):
                raise make_error(
                    f"'{name}' has a single value for all models.",
                    (*key_path, name),
                    "move it to the parameters of the whole recipe.",
                )
            for rule in setting:
                _check_rule(parameter, rule, make_error, (*key_path, name))
    return method


def _merged_together(recipe: Recipe) -> Iterator[tuple[KeyPath, list[str]]]:
    if recipe.models:
        yield ("models",), [part.model for part in recipe.models]
    for index, layers in enumerate(recipe.slices):
        yield ("slices", index, "sources"), [part.model for part in layers.sources]


def _check_base(recipe: Recipe, method: Method, make_error: MakeError) -> None:
    if method.needs_base and recipe.base is None:
        hint = "set base to the model before fine-tuning."
        raise make_error(f"The method '{method.name}' needs a base.", ("base",), hint)
    for index, layers in enumerate(recipe.slices):
        if method.needs_base and recipe.base not in {part.model for part in layers.sources}:
            raise make_error(
                f"The base '{recipe.base}' is not among the sources of the slice.",
                ("slices", index, "sources"),
                "add it with the corresponding layers.",
            )


def _check_count(method: Method, count: int, make_error: MakeError, key_path: KeyPath) -> None:
    if count < method.min_models or (method.max_models is not None and count > method.max_models):
        is_exact = method.max_models == method.min_models
        number = f"{method.min_models}" if is_exact else f"at least {method.min_models}"
        noun = "model" if number.endswith("1") else "models"
        beside = " beside the base" if method.base != "ignored" else ""
        raise make_error(
            f"The method '{method.name}' takes {number} {noun}{beside}, not {count}.",
            key_path,
            "change the list of models, or the method.",
        )


def _find_parameter(
    method: Method, name: str, make_error: MakeError, key_path: KeyPath
) -> Parameter:
    known = {parameter.name: parameter for parameter in method.parameters}
    if name not in known:
        raise make_error(
            f"The method '{method.name}' has no parameter '{name}'.",
            key_path,
            f"{did_you_mean(name, known)}its parameters are {', '.join(known) or 'none'}.",
        )
    return known[name]


def _check_rule(
    parameter: Parameter, rule: ParameterRule, make_error: MakeError, key_path: KeyPath
) -> None:
    values = rule.value if isinstance(rule.value, tuple) else (rule.value,)
    if parameter.flag and (len(values) > 1 or values[0] not in {0, 1}):
        raise make_error(
            f"'{parameter.name}' must be true or false.", key_path, "use true or false."
        )
    if not parameter.flag and any(isinstance(value, bool) for value in values):
        raise make_error(f"'{parameter.name}' must be a number.", key_path, "give a number.")
    if parameter.limits:
        low, high = parameter.limits
        wrong = [value for value in values if not low <= value <= high]
        if wrong:
            raise make_error(
                f"'{parameter.name}' is {wrong[0]:g}, but must be from {low:g} to {high:g}.",
                key_path,
                f"use a number from {low:g} to {high:g}.",
            )
