"""Whether a recipe fits its method: names, kinds and limits of parameters, number of models."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from forgetmap._plugins import did_you_mean
from forgetmap.errors import FieldError, UsageError
from forgetmap.merge.method import Method, Parameter
from forgetmap.merge.recipe_model import Recipe, Rule, settings_of
from forgetmap.merge.registry import find_method
from forgetmap.merge.yaml_lines import Place

Complaint = Callable[[str, Place, str], FieldError]
"""Makes an error of what is wrong, where, and what to do."""


def without_file(message: str, place: Place, hint: str) -> FieldError:
    """The complaint about a recipe that was not read from a file."""
    return FieldError(message, field=".".join(map(str, place)), hint=hint)


def check_recipe(recipe: Recipe, complaint: Complaint = without_file) -> Method:
    """The method of a recipe that fits it.

    Raises:
        FieldError: it does not fit.
    """
    try:
        found = find_method(recipe.method)
    except UsageError as error:
        raise complaint(error.message, ("method",), error.hint) from error
    _check_base(recipe, found, complaint)
    for place, parts in _merged_together(recipe):
        others = [part for part in parts if found.base == "ignored" or part != recipe.base]
        _check_count(found, len(others), complaint, place)
    for place, settings in settings_of(recipe):
        for name, setting in settings.items():
            parameter = _known(found, name, complaint, (*place, name))
            if not parameter.per_model and ("sources" in place or "models" in place):
                raise complaint(
                    f"'{name}' is one value for all models.",
                    (*place, name),
                    "move it to the parameters of the whole recipe.",
                )
            for rule in setting:
                _check_rule(parameter, rule, complaint, (*place, name))
    return found


def _merged_together(recipe: Recipe) -> Iterator[tuple[Place, list[str]]]:
    if recipe.models:
        yield ("models",), [part.model for part in recipe.models]
    for at, each in enumerate(recipe.slices):
        yield ("slices", at, "sources"), [part.model for part in each.sources]


def _check_base(recipe: Recipe, found: Method, complaint: Complaint) -> None:
    if found.needs_base and recipe.base is None:
        hint = "name the model it starts from as base."
        raise complaint(f"The method '{found.name}' needs a base.", ("base",), hint)
    for at, each in enumerate(recipe.slices):
        if found.needs_base and recipe.base not in {part.model for part in each.sources}:
            raise complaint(
                f"The base '{recipe.base}' is not among the sources of the slice.",
                ("slices", at, "sources"),
                "add it with the layers that belong to those of the others.",
            )


def _check_count(found: Method, count: int, complaint: Complaint, place: Place) -> None:
    if count < found.fewest or (found.most is not None and count > found.most):
        wanted = f"{found.fewest}" if found.most == found.fewest else f"at least {found.fewest}"
        beside = " beside the base" if found.base != "ignored" else ""
        raise complaint(
            f"The method '{found.name}' takes {wanted} model{beside}, not {count}."
            if wanted.endswith("1")
            else f"The method '{found.name}' takes {wanted} models{beside}, not {count}.",
            place,
            "change the list of models, or the method.",
        )


def _known(found: Method, name: str, complaint: Complaint, place: Place) -> Parameter:
    known = [each.name for each in found.parameters]
    if name not in known:
        raise complaint(
            f"The method '{found.name}' has no parameter '{name}'.",
            place,
            f"{did_you_mean(name, known)}its parameters are {', '.join(known) or 'none'}.",
        )
    return next(each for each in found.parameters if each.name == name)


def _check_rule(parameter: Parameter, rule: Rule, complaint: Complaint, place: Place) -> None:
    values = rule.value if isinstance(rule.value, tuple) else (rule.value,)
    if parameter.flag and (len(values) > 1 or values[0] not in {0, 1}):
        raise complaint(f"'{parameter.name}' is true or false.", place, "give true or false.")
    if not parameter.flag and any(isinstance(value, bool) for value in values):
        raise complaint(f"'{parameter.name}' is a number.", place, "give a number.")
    if parameter.limits:
        low, high = parameter.limits
        wrong = [value for value in values if not low <= value <= high]
        if wrong:
            raise complaint(
                f"'{parameter.name}' is {wrong[0]:g}, but goes from {low:g} to {high:g}.",
                place,
                f"give a number from {low:g} to {high:g}.",
            )
