"""One command per merge method, generated from the method's signature."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import click

from forgetmap.cli.options import Command
from forgetmap.cli.options.merge import MODEL_HELP, model_options, write_merge, writing_options
from forgetmap.errors import UsageError

if TYPE_CHECKING:
    from forgetmap.merge import Method, Parameter, Recipe

LINEAR = (
    "With two models, --weight is the share of the second: 0 returns the first bit for bit, 1 the "
    "second. With more, give one --weight per model; without any, all have equal weight."
)
"""Rule of this command; in recipes every model has its own weight."""
EXAMPLE_VALUES = {"weight": "0.2", "t": "0.2", "alpha": "0.2", "decay": "0.9"}
PAIR = 2


def method_command(method: Method) -> click.Command:
    """Return the command of a method."""

    def merge(models: tuple[str, ...], **options: Any) -> None:
        writing = {
            name: options.pop(name) for name in ("out", "shard_size", "threads", "overwrite")
        }
        write_merge(make_recipe(method, models, options), **writing)

    merge.__doc__ = _help(method)
    command = writing_options(model_options(merge))
    for parameter in reversed(method.parameters):
        command = _option(method, parameter)(command)
    words = "MODEL..." if method.base == "ignored" else "BASE MODEL..."
    if method.max_models == 1:
        words = words.replace("...", "")
    command = click.argument("models", nargs=-1, required=True, metavar=words)(command)
    return click.command(method.name, epilog=_examples(method))(command)


def make_recipe(method: Method, models: Sequence[str], options: dict[str, Any]) -> Recipe:
    """Convert a command line into a recipe."""
    from forgetmap.merge import Recipe

    base, parts = None, list(models)
    if method.base != "ignored" and len(parts) > method.min_models:
        base, *parts = parts
    _check_count(method, parts, base)
    common: dict[str, Any] = {}
    per_model: list[dict[str, Any]] = [{} for _ in parts]
    for parameter in method.parameters:
        value = options.pop(parameter.keyword)
        if not parameter.per_model:
            common |= {} if value is None else {parameter.name: value}
            continue
        for own, number in zip(
            per_model, _values_per_model(method, parameter, value, parts), strict=True
        ):
            if number is not None:
                own[parameter.name] = number
    entries = [
        {"model": model, "parameters": own} if own else {"model": model}
        for model, own in zip(parts, per_model, strict=True)
    ]
    recipe = {"method": method.name, "models": entries, "base": base, "parameters": common}
    more = {name: value for name, value in options.items() if value is not None}
    return Recipe.model_validate({name: value for name, value in recipe.items() if value} | more)


def _check_count(method: Method, parts: Sequence[str], base: str | None) -> None:
    few = len(parts) < method.min_models or (method.needs_base and base is None)
    if few or (method.max_models is not None and len(parts) > method.max_models):
        or_more = "" if method.max_models == method.min_models else " or more"
        number = f"{method.min_models}{or_more}"
        before = "BASE and " if method.needs_base else ""
        raise UsageError(
            f"{method.name} takes {before}{number} models, not {len(parts) + (base is not None)}",
            hint=f"see forgetmap merge {method.name} --help.",
        )


def _values_per_model(
    method: Method, parameter: Parameter, values: Sequence[float], parts: Sequence[str]
) -> list[float | None]:
    """Return one value per model."""
    if method.name == "linear" and parameter.name == "weight":
        if not values:
            return [1.0] * len(parts)
        if len(values) == 1 and len(parts) == PAIR:
            return [round(1.0 - values[0], 12), values[0]]  # 0.1, not 0.09999999999999998
    if len(values) == len(parts):
        return list(values)
    if len(values) == 1 and method.name != "linear":
        return [values[0]] * len(parts)
    if not values:
        return [1.0 if parameter.default is None else None] * len(parts)
    raise UsageError(
        f"there are {len(values)} values of --{parameter.name} for {len(parts)} models",
        hint=f"give --{parameter.name} once per model, in the order of the models.",
    )


def _option(method: Method, parameter: Parameter) -> Callable[[Command], Command]:
    name = f"--{parameter.name.replace('_', '-')}"
    text = _explain(method, parameter)
    if parameter.flag:
        no = f"--no-{parameter.name.replace('_', '-')}"
        return click.option(f"{name}/{no}", parameter.keyword, default=None, help=text)
    kind = click.FloatRange(*parameter.limits) if parameter.limits else click.FLOAT
    if parameter.per_model:
        return click.option(name, parameter.keyword, type=kind, multiple=True, help=text)
    return click.option(
        name, parameter.keyword, type=kind, required=parameter.default is None, help=text
    )


def _explain(method: Method, parameter: Parameter) -> str:
    text = f"Parameter `{parameter.name}` of the method"
    if parameter.per_model:
        text += ", once for all models or once per model"
    if method.name == "linear" and parameter.per_model:
        text = "Share of the second model, or one weight per model"
    default = "1 each" if parameter.per_model and parameter.default is None else parameter.default
    return f"{text}." if default is None else f"{text} [default: {default}]."


def _help(method: Method) -> str:
    paper = f"\n\n{method.paper}." if method.paper else ""
    direction = LINEAR if method.name == "linear" else method.direction
    direction = f"\n\n{direction}" if direction else ""
    start = method.summary[0].upper() + method.summary[1:]
    return f"{start}.{direction}\n\n{MODEL_HELP}{paper}"


def _examples(method: Method) -> str:
    names = [part.name for part in method.parameters if part.default is None and not part.flag]
    values = "".join(f" --{name} {EXAMPLE_VALUES.get(name, '0.5')}" for name in names)
    models = "base tuned" if method.base == "ignored" or method.max_models == 1 else "base one two"
    if method.name == "passthrough":
        models = "base+adapter"
    line = f"forgetmap merge {method.name} {models}{values} --out merged"
    return f"\b\nExamples:\n  {line}\n"
