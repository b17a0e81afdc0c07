"""`forgetmap merge methods`."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from forgetmap.cli.options.output import json_option

if TYPE_CHECKING:
    from forgetmap.merge import Method, Parameter

EXAMPLES = """\b
Examples:
  forgetmap merge methods
  forgetmap merge methods --json
"""


@click.command("methods", epilog=EXAMPLES)
@json_option
def command(*, as_json: bool) -> None:
    """List the methods, their parameters and papers."""
    from forgetmap.merge import find_method, method_names

    methods = [find_method(name) for name in method_names()]
    if as_json:
        click.echo(json.dumps([_as_json(method) for method in methods], indent=2))
        return
    for method in methods:
        _print_method(method)


def _as_json(method: Method) -> dict[str, object]:
    return {
        "name": method.name,
        "says": method.summary,
        "paper": method.paper,
        "base": method.base,
        "parameters": [asdict(parameter) for parameter in method.parameters],
    }


def _print_method(method: Method) -> None:
    from rich.console import Console
    from rich.text import Text

    console = Console()
    console.print(Text(method.name, style="bold"), Text(method.summary), soft_wrap=True)
    parameters = ", ".join(map(_parameter, method.parameters)) or "no parameters"
    base = {"needed": "needs a base; ", "possible": "may have a base; "}.get(method.base, "")
    console.print(Text(f"    {base}{parameters}", style="dim"), soft_wrap=True)
    if method.paper:
        console.print(Text(f"    {method.paper}", style="dim"), soft_wrap=True)


def _parameter(parameter: Parameter) -> str:
    per_model = " per model" if parameter.per_model else ""
    default = "" if parameter.default is None else f" ({parameter.default})"
    return f"{parameter.name}{default}{per_model}"
