"""Small charts in a grid that fits the width of the page.

In Vega-Lite, pictures with several panels cannot follow the width of the page. So its output is
changed: the number of columns and the width of a panel follow the page.
"""

from __future__ import annotations

from forgetmap.report.figures import look
from forgetmap.report.figures.figure import Record, Spec

WIDTH = 580
"""Width of the whole picture without a page."""
BESIDE = 74
"""Width of the axis of a panel with its title, and of the gap to the next panel."""
LEAST = 120


def panels(
    alt: str, rows: list[Record], layers: list[Spec], *, columns: int, height: int, names: str
) -> Spec:
    """Return one panel for each value of a field, sorted by `order` in the rows.

    Args:
        alt: text for screen readers.
        rows: data.
        layers: layers of each panel.
        columns: number of columns without a page.
        height: height of a panel.
        names: field of the panels.
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
    """Make columns and widths of compiled panels follow the page.

    Args:
        spec: specification from `panels`.
        vega: the same, compiled.
    """
    cell = spec["spec"]["width"] + BESIDE
    room = f"(isFinite(containerSize()[0]) ? containerSize()[0] : {WIDTH})"
    count = len({row[spec["facet"]["field"]] for row in spec["data"]["values"]})
    most = f"max(1, floor(({room} + 20) / {cell}))"
    columns = f"ceil({count} / ceil({count} / {most}))"  # no last row with a single panel
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
