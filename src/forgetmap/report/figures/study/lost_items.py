"""Number of pairs that forgot each item."""

from __future__ import annotations

from collections.abc import Sequence

from forgetmap.report.figures import look
from forgetmap.report.figures.figure import Figure, Spec, as_table

MIN_PAIRS = 2


def lost_items_figure(counts: Sequence[int]) -> Figure | None:
    """Draw how many items were forgotten by how many pairs; `counts` starts at 0 pairs."""
    last = max((number for number, count in enumerate(counts) if count), default=0)
    if len(counts) - 1 < MIN_PAIRS or not last:
        return None
    records = [{"pairs": number, "items": int(counts[number])} for number in range(last + 1)]
    some = sum(counts[1:])
    alt = (
        f"Of {sum(counts):,} items known by a model before, {some:,} were forgotten by a pair, "
        f"{sum(counts[MIN_PAIRS:]):,} by several; at most by {last} of {len(counts) - 1} pairs."
    )
    x: Spec = {
        "field": "pairs", "type": "ordinal", "title": "number of pairs that forgot the item",
        "axis": {"labelAngle": 0, "grid": False, "ticks": False, "labelOverlap": True},
    }  # fmt: skip
    y: Spec = {
        "field": "items", "type": "quantitative", "title": "items",
        "scale": {"type": "sqrt", "zero": True, "nice": True},
        "axis": {"format": "~s", "tickCount": 5},
    }  # fmt: skip
    return Figure(
        name="lost_items",
        title="Are the same items forgotten repeatedly?",
        caption="Items known by at least one model before, by the number of pairs that forgot "
        "them, on a square-root scale. An item counts as forgotten if it is forgotten in at "
        "least half of the repeats.",
        alt=alt,
        table=as_table(records),
        spec=look.base_spec(alt)
        | {
            "data": {"values": records},
            "height": 240,
            "encoding": {"x": x, "y": y},
            "layer": [
                {
                    "mark": {"type": "bar", "color": look.FORGOTTEN},
                    "encoding": {
                        "color": {
                            "condition": {"test": "datum.pairs === 0", "value": look.KEPT},
                            "value": look.FORGOTTEN,
                        },
                        "tooltip": [{"field": "pairs"}, {"field": "items", "format": ","}],
                    },
                },
                {
                    "mark": {"type": "text", "dy": -8, "fontSize": 11},
                    "encoding": {
                        "text": {"field": "items", "format": ","},
                        "color": {"value": look.by_theme(look.TEXT)},
                    },
                },
            ],
        },
    )
