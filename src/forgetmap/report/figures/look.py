"""Colours, fonts and conventions of all Vega figures.

Names and texts from inputs are only data values: never part of an expression, nor keys of a spec.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Literal

from forgetmap.report.figures.figure import Record, Spec
from forgetmap.report.payloads.schema import FLIPS, Capabilities, Direction, Level, Payload
from forgetmap.text import printable

Theme = Literal["light", "dark"]
FORGOTTEN, GAINED, KEPT, NEVER, REGAINED = "#D55E00", "#0072B2", "#009E73", "#8c8c8c", "#56B4E9"
MODELS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#8c8c8c"]
SHAPES = ["circle", "square", "triangle-up", "diamond", "cross", "triangle-down", "triangle-right"]
"""Shapes of models, in addition to colours."""

TEXT = {"light": "#24292f", "dark": "#e6e6e6"}
LINES = {"light": "#d4d9df", "dark": "#444b54"}
GROUND = {"light": "#ffffff", "dark": "#15181c"}
FONT = "system-ui, sans-serif"
VEGA_LITE = "https://vega.github.io/schema/vega-lite/v6.json"
VEGA = "https://vega.github.io/schema/vega/v6.json"
SHARE = "~%"
DARK: Record = {"name": "dark", "value": False}
"""Switch of every figure."""
NAME_AXIS: Spec = {"labelLimit": 190, "ticks": False, "domain": False, "labelPadding": 8}
ZERO_MARK: Spec = {"type": "rule", "strokeDash": [3, 3], "color": NEVER}
KEY = "datum.comparison + '|' + datum.level + '|' + datum.group"
"""Key of a group, for looking up facts."""

WORDS: dict[Direction, str] = {"forgetting": "forgotten", "backward_transfer": "gained"}
COLOUR: Spec = {
    "field": "direction",
    "title": None,
    "scale": {"domain": ["forgetting", "backward_transfer"], "range": [FORGOTTEN, GAINED]},
    "legend": {
        "labelExpr": "datum.label === 'backward_transfer' ? 'gained' : 'forgotten'",
        "symbolOpacity": 1,
        "orient": "top",
    },
}
SCALE_TITLE = (
    "scale === 'items' ? 'share of all items' : "
    "'share of what was right before (gained: wrong before)'"
)


def by_theme(colours: dict[Theme, str] | dict[str, str], key: str = "expr") -> Spec:
    """Return a colour that follows the param `dark`."""
    return {key: f"dark ? '{colours['dark']}' : '{colours['light']}'"}


def config(key: str = "expr") -> Spec:
    """Return fonts and colours; `key` is `expr` for Vega-Lite and `signal` for Vega."""
    text, lines = by_theme(TEXT, key), by_theme(LINES, key)
    words: Spec = {"labelColor": text, "titleColor": text, "labelFont": FONT, "titleFont": FONT}
    words |= {"labelFontSize": 12, "titleFontSize": 12, "titleFontWeight": "normal"}
    return {
        "axis": words | {"gridColor": lines, "domainColor": lines, "tickColor": lines},
        "legend": words | {"labelLimit": 260},
        "title": {"color": text, "font": FONT, "fontWeight": "normal"},
        "text": {"fill" if key == "signal" else "color": text, "font": FONT, "fontSize": 12},
        "view": {"stroke": None},
    }


def vega_lite(payload: Payload, alt: str, *, one: bool = True) -> Spec:
    """Return the common part of Vega-Lite figures of comparisons and drifts.

    Args:
        payload: the report.
        alt: text for screen readers.
        one: whether it shows one selected comparison at a time.
    """
    return base_spec(alt, switches(payload, one=one))


def base_spec(alt: str, params: Sequence[Record] = (DARK,)) -> Spec:
    """Return the common part of all Vega-Lite figures; the page sets the `params`."""
    return {
        "$schema": VEGA_LITE,
        "description": alt,
        "background": "transparent",
        "width": "container",
        "autosize": {"type": "fit-x", "contains": "padding"},
        "config": config(),
        "params": list(params),
    }


def switches(payload: Payload, *, one: bool = True) -> list[Record]:
    """Return the params that the page sets."""
    if payload.capabilities:
        return _switches_of_drift(payload.capabilities, one=one)
    several = one and len(payload.comparisons) > 1
    return [
        {"name": "estimator", "value": FLIPS},
        {"name": "scale", "value": "items"},
        DARK,
        *([{"name": "comparison", "value": 0}] if several else []),
    ]


def _switches_of_drift(drift: Capabilities, *, one: bool) -> list[Record]:
    first = next((cell.id for cell in drift.result.capabilities), "")
    return [
        {"name": "scale", "value": drift.scales[0].name},
        DARK,
        {"name": "capability", "value": first},
        *([{"name": "comparison", "value": 0}] if one else []),
    ]


def row_filter(payload: Payload, *levels: Level, scale: str = "scale", beside: str = "") -> str:
    """Return the test for drawn rows: of these levels, as selected by the switches.

    Args:
        payload: the report.
        levels: levels of groups.
        scale: an expression that replaces the switch.
        beside: another estimator that is drawn too.
    """
    at = " || ".join(f"datum.level === '{level}'" for level in levels)
    by = "datum.estimator === estimator" + f" || datum.estimator === '{beside}'" * bool(beside)
    return f"({at}) && ({by}) && datum.scale === {scale} && {of_one(payload)}"


def of_one(payload: Payload) -> str:
    """Return the test for the selected comparison."""
    return f"datum.comparison === {'comparison' if len(payload.comparisons) > 1 else '0'}"


def with_facts(facts: list[Record], *fields: str) -> list[Spec]:
    """Return transforms that look up facts of groups; groups without facts are not drawn."""
    values = [{name: fact[name] for name in ("key", *fields)} for fact in facts]
    source = {"data": {"values": values}, "key": "key", "fields": list(fields)}
    return [
        {"calculate": KEY, "as": "key"},
        {"lookup": "key", "from": source},
        {"filter": "isValid(datum.label)"},
    ]


def most_per_comparison(places: Sequence[int]) -> int:
    """Return the number of lines that a figure needs for any selected comparison."""
    return max(Counter(places).values(), default=0)


OF_EVERY_OBJECT = frozenset({
    "__defineGetter__", "__defineSetter__", "__lookupGetter__", "__lookupSetter__", "__proto__",
    "constructor", "hasOwnProperty", "isPrototypeOf", "propertyIsEnumerable", "toLocaleString",
    "toString", "valueOf",
})  # fmt: skip


def label_of(name: str) -> str:
    """Return a name as drawn: never blank, and no property name of JavaScript objects."""
    label = printable(name)
    if not label.strip():
        return f"“{label}”"
    return f" {label}" if label in OF_EVERY_OBJECT else label


def key_of(comparison: int, level: Level, group: str) -> str:
    """Return the value of `KEY` for a group."""
    return f"{comparison}|{level}|{group}"
