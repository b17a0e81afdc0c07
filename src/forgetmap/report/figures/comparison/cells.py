"""The four cells of a comparison as a mosaic; areas are shares of all results."""

from __future__ import annotations

from forgetmap.comparison import GroupResult
from forgetmap.report.figures import look
from forgetmap.report.figures.figure import Figure, Record, Spec, as_table
from forgetmap.report.payloads.schema import Payload
from forgetmap.text import percent

COLOURS = {
    "kept": look.KEPT,
    "forgotten": look.FORGOTTEN,
    "gained": look.GAINED,
    "never right": look.NEVER,
}


def cells(payload: Payload) -> Figure | None:
    """Draw the cells: right before on the left, right after at the bottom."""
    records = [
        {"comparison": index} | record
        for index, comparison in enumerate(payload.comparisons)
        for record in _mosaic(comparison.total)
    ]
    if not records:
        return None
    summary = ", ".join(
        f"{record['cell']} {record['count']:,} ({record['share']})"
        for record in records
        if record["comparison"] == records[0]["comparison"]
    )
    alt = f"Of {payload.comparisons[0].total.n:,} results: {summary}."
    return Figure(
        name="cells",
        title="Kept, forgotten, gained, never right",
        caption="Each area is a share of all results. Left column: right before; right column: "
        "wrong before. Lower row: right after. Luck and noise are included.",
        alt=alt,
        table=as_table(
            [{name: record[name] for name in ("comparison", "cell", "count")} for record in records]
        ),
        spec=_spec(payload, alt, records),
    )


def _mosaic(total: GroupResult) -> list[Record]:
    """Return each cell with its corners in the unit square."""
    if not total.n:
        return []
    split = (total.n11 + total.n10) / total.n
    columns = [
        (0.0, split, (("kept", total.n11), ("forgotten", total.n10))),
        (split, 1.0, (("gained", total.n01), ("never right", total.n00))),
    ]
    rectangles = []
    for left, right, ((below, low), (above, high)) in columns:
        share = low / (low + high) if low + high else 0.0
        for name, count, bottom, top in ((below, low, 0.0, share), (above, high, share, 1.0)):
            rectangles.append({
                "cell": name, "count": count, "share": percent(count / total.n),
                "left": left, "right": right, "bottom": bottom, "top": top,
                "at": (bottom + top) / 2,
            })  # fmt: skip
    return rectangles


def _spec(payload: Payload, alt: str, records: list[Record]) -> Spec:
    bounds = {"domain": [0, 1], "nice": False}
    x: Spec = {"type": "quantitative", "axis": None, "scale": bounds}
    return look.vega_lite(payload, alt) | {
        "width": 240,
        "autosize": "pad",
        "height": 200,
        "data": {"values": records},
        "transform": [
            {"filter": look.of_one(payload)},
            {"calculate": "datum.cell + ' ' + format(datum.count, ',')", "as": "line"},
        ],
        "layer": [
            {
                "mark": {"type": "rect", "stroke": look.by_theme(look.GROUND), "strokeWidth": 2},
                "encoding": {
                    "x": x | {"field": "left"},
                    "x2": {"field": "right"},
                    "y": x | {"field": "bottom"},
                    "y2": {"field": "top"},
                    "color": {
                        "field": "cell",
                        "scale": {"domain": list(COLOURS), "range": list(COLOURS.values())},
                        "legend": None,
                    },
                    "tooltip": [
                        {"field": "cell"},
                        {"field": "count", "format": ","},
                        {"field": "share"},
                    ],
                },
            },
            *_labels(),
            *_heads(),
        ],
    }


def _labels() -> list[Spec]:
    """Return labels beside the cells, where they fit any share and are readable on any colour."""
    sides = [
        ("datum.cell === 'kept' || datum.cell === 'forgotten'", 0, -10, "right"),
        ("datum.cell === 'gained' || datum.cell === 'never right'", 1, 10, "left"),
    ]
    return [
        {
            "transform": [{"filter": own}],
            "mark": {"type": "text", "align": align, "dx": dx, "dy": dy, "fontSize": size},
            "encoding": {
                "x": {"datum": at, "type": "quantitative", "axis": None},
                "y": {"field": "at", "type": "quantitative", "axis": None},
                "text": {"field": field},
            },
        }
        for own, at, dx, align in sides
        for field, dy, size in (("line", -7, 13), ("share", 9, 12))
    ]


def _heads() -> list[Spec]:
    return [
        {
            "data": {"values": [{"head": words}]},
            "mark": {"type": "text", "align": align, "dy": -9, "fontSize": 12},
            "encoding": {"x": {"datum": at}, "y": {"datum": 1}, "text": {"field": "head"}},
        }
        for words, at, align in (("right before", 0, "left"), ("wrong before", 1, "right"))
    ]
