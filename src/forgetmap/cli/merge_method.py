"""One command per merge method, made from the method's signature."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any

import click
from rich.console import Console
from rich.text import Text

from forgetmap.cli.merging import MODEL_HELP, do_merge, model_options, writing_options
from forgetmap.errors import UsageError
from forgetmap.merge import Method, Parameter, Recipe

DIRECTION = {
    "linear": "With two models --weight is the share of the second: 0 returns the first bit for "
    "bit, 1 the second. With more, give one --weight per model; without any, all count the same.",
    "slerp": "At --t 0 the result is BASE bit for bit, at 1 the other model.",
    "wise_ft": "At --alpha 0 the result is BASE bit for bit, at 1 the tuned model.",
    "ema": "Models are taken in their order: the mean keeps --decay of itself at every step.",
    "passthrough": "With BASE+ADAPTER as the model, the adapter is merged into its base.",
}
SHOWN_VALUES = {"weight": "0.2", "t": "0.2", "alpha": "0.2", "decay": "0.9"}
"""What stands in examples."""
PAIR = 2


def method_command(method: Method) -> click.Command:
    """The command of a method."""

    def merge(models: tuple[str, ...], **options: Any) -> None:
        writing = {
            name: options.pop(name) for name in ("out", "shard_size", "threads", "overwrite")
        }
        do_merge(recipe_of(method, models, options), **writing)

    merge.__doc__ = _help(method)
    command = writing_options(model_options(merge))
    for parameter in reversed(method.parameters):
        command = _option(method, parameter)(command)
    words = "MODEL..." if method.base == "ignored" else "BASE MODEL..."
    if method.most == 1:
        words = words.replace("...", "")
    command = click.argument("models", nargs=-1, required=True, metavar=words)(command)
    return click.command(method.name, epilog=_examples(method))(command)


def recipe_of(method: Method, models: Sequence[str], options: dict[str, Any]) -> Recipe:
    """The recipe that a command line stands for."""
    base, parts = None, list(models)
    if method.base != "ignored" and len(parts) > method.fewest:
        base, *parts = parts
    _check_count(method, parts, base)
    settings: dict[str, Any] = {}
    own: list[dict[str, Any]] = [{} for _ in parts]
    for parameter in method.parameters:
        given = options.pop(parameter.keyword)
        if parameter.per_model:
            for values, value in zip(own, _per_model(method, parameter, given, parts), strict=True):
                values[parameter.name] = value
        elif given is not None:
            settings[parameter.name] = given
    own = [{name: value for name, value in each.items() if value is not None} for each in own]
    listed = [
        {"model": model, "parameters": values} if values else {"model": model}
        for model, values in zip(parts, own, strict=True)
    ]
    chosen = {name: value for name, value in options.items() if value is not None}
    told = {"method": method.name, "models": listed, "base": base, "parameters": settings}
    return Recipe.model_validate({name: value for name, value in told.items() if value} | chosen)


def _check_count(method: Method, parts: Sequence[str], base: str | None) -> None:
    few = len(parts) < method.fewest or (method.needs_base and base is None)
    if few or (method.most is not None and len(parts) > method.most):
        wanted = f"{method.fewest}{'' if method.most == method.fewest else ' or more'}"
        before = "BASE and " if method.needs_base else ""
        raise UsageError(
            f"{method.name} takes {before}{wanted} models, not {len(parts) + (base is not None)}",
            hint=f"see forgetmap merge {method.name} --help.",
        )


def _per_model(
    method: Method, parameter: Parameter, given: Sequence[float], parts: Sequence[str]
) -> list[float | None]:
    """One value for every model."""
    if method.name == "linear" and parameter.name == "weight":
        if not given:
            return [1.0] * len(parts)
        if len(given) == 1 and len(parts) == PAIR:
            return [round(1.0 - given[0], 12), given[0]]  # 0.1, not 0.09999999999999998
    if len(given) == len(parts):
        return list(given)
    if len(given) == 1 and method.name != "linear":
        return [given[0]] * len(parts)
    if not given:
        return [1.0 if parameter.default is None else None] * len(parts)
    raise UsageError(
        f"there are {len(given)} values of --{parameter.name} for {len(parts)} models",
        hint=f"give --{parameter.name} once for each model, in the order of the models.",
    )


def _option(method: Method, parameter: Parameter) -> Callable[[Any], Any]:
    name = f"--{parameter.name.replace('_', '-')}"
    told = _explained(method, parameter)
    if parameter.flag:
        no = f"--no-{parameter.name.replace('_', '-')}"
        return click.option(f"{name}/{no}", parameter.keyword, default=None, help=told)
    kind = click.FloatRange(*parameter.limits) if parameter.limits else click.FLOAT
    if parameter.per_model:
        return click.option(name, parameter.keyword, type=kind, multiple=True, help=told)
    return click.option(
        name, parameter.keyword, type=kind, required=parameter.default is None, help=told
    )


def _explained(method: Method, parameter: Parameter) -> str:
    if parameter.per_model:
        told = "Once for all models, or once for each."
        if method.name == "linear":
            told = "Share of the second model, or one weight for each."
    else:
        told = f"`{parameter.name}` of the method."
    if parameter.default is None:
        return f"{told}  [default: 1 each]" if parameter.per_model else told
    return f"{told}  [default: {parameter.default}]"


def _help(method: Method) -> str:
    paper = f"\n\n{method.paper}." if method.paper else ""
    direction = f"\n\n{DIRECTION[method.name]}" if method.name in DIRECTION else ""
    start = method.says[0].upper() + method.says[1:]
    return f"{start}.{direction}\n\n{MODEL_HELP}{paper}"


def _examples(method: Method) -> str:
    needed = [each for each in method.parameters if each.default is None and not each.flag]
    values = "".join(f" --{each.name} {SHOWN_VALUES.get(each.name, '0.5')}" for each in needed)
    models = "base tuned" if method.base == "ignored" or method.most == 1 else "base one two"
    if method.name == "passthrough":
        models = "base+adapter"
    line = f"forgetmap merge {method.name} {models}{values} --out merged"
    return f"\b\nExamples:\n  {line}\n"


def print_methods(methods: Sequence[Method], *, as_json: bool) -> None:
    """All methods and what they take."""
    if as_json:
        told = [
            {"name": each.name, "says": each.says, "paper": each.paper, "base": each.base,
             "parameters": [asdict(parameter) for parameter in each.parameters]}
            for each in methods
        ]  # fmt: skip
        click.echo(json.dumps(told, indent=2))
        return
    console = Console()
    for each in methods:
        console.print(Text(each.name, style="bold"), Text(each.says), soft_wrap=True)
        takes = ", ".join(_takes(parameter) for parameter in each.parameters) or "no parameters"
        base = {"needed": "needs a base; ", "possible": "may have a base; "}.get(each.base, "")
        console.print(Text(f"    {base}{takes}", style="dim"), soft_wrap=True)
        if each.paper:
            console.print(Text(f"    {each.paper}", style="dim"), soft_wrap=True)


def _takes(parameter: Parameter) -> str:
    each = " per model" if parameter.per_model else ""
    default = "" if parameter.default is None else f" ({parameter.default})"
    return f"{parameter.name}{default}{each}"
