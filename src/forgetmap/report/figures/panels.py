"""Small charts in a grid that fits the width of the page.

Vega-Lite gives pictures of several panels no width of the page around. So what it made of them is
changed: the number of columns and the width of a panel follow the page.
"""

from __future__ import annotations

from forgetmap.report.figures import look
from forgetmap.report.figures.figure import Record, Spec

WIDTH = 580
"""Of the whole picture, where there is no page."""
BESIDE = 74
"""Of a panel: its axis with its title, and the room to the next."""
LEAST = 120


def panels(
    alt: str, rows: list[Record], layers: list[Spec], *, columns: int, height: int, names: str
) -> Spec:
    """One panel for each value of a field; `order` in the rows says which comes first.

    Args:
        alt: what a screen reader says.
        rows: the data.
        layers: of each panel.
        columns: where there is no page to ask.
        height: of a panel.
        names: the field.
    """
    shared = {
        name: part
        for name, part in look.base_spec(alt).items()
        if name not in ("width", "autosize")
    }
    return shared | {
        "data": {"values": rows},
        "facet": {
            "field": names,
            "type": "nominal",
            "title": None,
            "sort": {"field": "order", "op": "min"},
            "header": {"labelAnchor": "start", "labelFontSize": 12, "labelFontWeight": 600,
                       "labelColor": look.by_theme(look.TEXT), "labelFont": look.FONT,
                       "labelPadding": 4, "labelLimit": WIDTH // columns - 24},
        },
        "columns": columns,
        "spacing": 14,
        "spec": {"width": WIDTH // columns - BESIDE, "height": height, "layer": layers},
        "resolve": {"axis": {"x": "independent", "y": "independent"}},
    }  # fmt: skip


def follow_page(spec: Spec, vega: Spec) -> Spec:
    """The compiled panels with columns and widths that follow the page.

    Args:
        spec: as `panels` made it.
        vega: the same, compiled.
    """
    cell = spec["spec"]["width"] + BESIDE
    room = f"(isFinite(containerSize()[0]) ? containerSize()[0] : {WIDTH})"
    count = len({row[spec["facet"]["field"]] for row in spec["data"]["values"]})
    most = f"max(1, floor(({room} + 20) / {cell}))"
    columns = f"ceil({count} / ceil({count} / {most}))"  # no row with one panel left over
    width = f"max({LEAST}, floor({room} / ({columns})) - {BESIDE})"
    signals = [
        _following("child_width", width) if signal["name"] == "child_width" else signal
        for signal in vega["signals"]
    ]
    return vega | {
        "signals": [*signals, _following("panel_columns", columns)],
        "layout": vega["layout"] | {"columns": {"signal": "panel_columns"}},
    }


def _following(name: str, expression: str) -> Spec:
    resized = {"source": "window", "type": "resize"}
    return {
        "name": name,
        "init": expression,
        "on": [{"events": resized, "update": expression}],
    }
