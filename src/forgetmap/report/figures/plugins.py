"""Figures that installed packages add by entry point.

A package adds one by an entry point in the group `forgetmap.figures` that refers to a
`FigurePlugin`. It is then shown in every page, written by `write_figures`, and listed with its
numbers in Markdown.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from forgetmap._plugins import Registry
from forgetmap.errors import UsageError
from forgetmap.report.figures import look
from forgetmap.report.figures.figure import Figure, Record, Spec, as_table
from forgetmap.report.payloads import AnyPayload

_MISTAKES = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
"""Errors of plugins with payloads that they do not expect."""


@dataclass(frozen=True, slots=True)
class FigurePlugin:
    """A figure of another package; its name is that of the entry point.

    Attributes:
        title: what it shows.
        draw: returns Vega-Lite for a payload, or None if there is nothing to show. The common part
            of all figures (schema, width, fonts, colours, the param `dark`) is added; data are in
            `data.values`, or `{"name": "rows"}` for all estimates in long form.
        caption: how to read it.
    """

    title: str
    draw: Callable[[AnyPayload], Spec | None]
    caption: str = ""


def _check_figure(value: object) -> FigurePlugin:
    if not isinstance(value, FigurePlugin):
        raise TypeError("it is not a forgetmap.report.FigurePlugin")
    return value


FIGURES = Registry(group="forgetmap.figures", kind="figure", built_in={}, check=_check_figure)
"""Figures of other packages."""


def plugin_figures(payload: AnyPayload) -> list[Figure]:
    """Draw the figures of installed packages for this payload.

    Raises:
        UsageError: a figure cannot be loaded or drawn.
    """
    figures = []
    for name in FIGURES.names():
        plugin = FIGURES.get(name)
        try:
            spec = plugin.draw(payload)
        except _MISTAKES as error:
            raise UsageError(
                f"the figure {name!r} cannot be drawn: {error}",
                hint="fix or uninstall the package that adds it.",
            ) from error
        if spec is not None:
            figures.append(_complete(name, plugin, spec))
    return figures


def _complete(name: str, plugin: FigurePlugin, spec: Spec) -> Figure:
    values: list[Record] = spec.get("data", {}).get("values", [])
    shared = look.base_spec(plugin.title)
    params = [*shared["params"], *spec.get("params", [])]
    return Figure(
        name=re.sub(r"\W", "_", name),
        title=plugin.title,
        caption=plugin.caption,
        alt=f"{plugin.title}. {plugin.caption}".strip(),
        table=as_table(values),
        spec=shared | spec | {"params": params},
    )
