"""Reports with numbers that are known by hand, and the marks that Vega draws for them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import vl_convert

import forgetmap as fm
from backends import as_arrow
from forgetmap.report.figures.data import rows_as_records
from forgetmap.report.figures.figure import Figure
from forgetmap.report.figures.registry import all_figures
from forgetmap.report.payloads.comparison import make_payload
from forgetmap.report.payloads.schema import Payload

Groups = Mapping[str, Mapping[str, int]]
"""Category -> path -> items; a path has a digit per model, 1 for right, - for missing."""

PAIR: Groups = {
    "maths": {"11": 40, "10": 20, "01": 10, "00": 30},
    "law": {"11": 70, "10": 5, "01": 15, "00": 10},
    "art": {"11": 30, "10": 10, "01": 0, "00": 10},
}
MANY: Groups = {
    "maths": {"111": 40, "101": 20, "010": 10, "000": 30},
    "law": {"11-": 70, "10-": 5, "01-": 15, "00-": 10},
    "art": {"111": 30, "100": 10, "000": 10},
    "music": {"111": 30, "110": 20, "000": 10},
}
CHAIN: Groups = {
    "maths": {"1111": 9, "1110": 2, "1101": 4, "1000": 1, "0000": 6},
    "law": {"0111": 3, "0101": 5, "0000": 7, "1010": 8},
}


def report(
    groups: Groups, *, chain: bool = False, ended: str | None = None, **columns: Any
) -> Payload:
    """Return the report on models with these paths.

    Args:
        groups: numbers of items by category and path.
        chain: whether the models are checkpoints.
        ended: outcome of wrong answers.
        columns: further columns, the same for all items.
    """
    models = len(next(path for paths in groups.values() for path in paths))
    runs: list[list[dict[str, Any]]] = [[] for _ in range(models)]
    for group, paths in groups.items():
        taken = [path for path, count in paths.items() for _ in range(count)]
        for number, path in enumerate(taken):
            row = {"task": f"task of {group}", "item": str(number), "category": group} | columns
            for run, state in zip(runs, path, strict=True):
                if state != "-":
                    outcome = ended if state == "0" else None
                    run.append(row | {"score": float(state), "outcome": outcome})
    compare: Any = fm.compare
    return make_payload(compare(*map(as_arrow, runs), chain=chain, min_paired=0.5))


def figure(payload: Payload, name: str) -> Figure:
    """Return the figure with this name."""
    return next(each for each in all_figures(payload) if each.name == name)


def marks(payload: Payload, name: str, kind: str, **switches: Any) -> list[dict[str, Any]]:
    """Return the marks of one kind that Vega draws, without axes and legends."""
    spec = dict(figure(payload, name).spec or {})
    records = rows_as_records(payload.rows)
    key = "params" if "params" in spec else "signals"
    assert switches.keys() <= {each["name"] for each in spec[key]}
    spec[key] = [each | {"value": switches.get(each["name"], each["value"])} for each in spec[key]]
    if key == "params":
        width = 600 if spec["width"] == "container" else spec["width"]
        filled = spec | {"width": width, "datasets": {"rows": records}}
        scene = vl_convert.vegalite_to_scenegraph(filled)
    else:
        spec["data"] = [
            each | ({"values": records} if each["name"] == "rows" else {}) for each in spec["data"]
        ]
        scene = vl_convert.vega_to_scenegraph(spec)
    return list(_marks(scene["scenegraph"], kind))


def _marks(mark: dict[str, Any], kind: str) -> Iterator[dict[str, Any]]:
    for item in mark.get("items", []):
        if mark["marktype"] == kind and mark.get("role") == "mark":
            yield item
        for inner in item.get("items") or []:
            if inner.get("role") not in {"axis", "legend", "title"}:
                yield from _marks(inner, kind)


def axis_labels(payload: Payload, name: str) -> list[str]:
    """Return the labels of the left axis, from the top."""
    spec = figure(payload, name).spec or {}
    filled = spec | {"width": 600, "datasets": {"rows": rows_as_records(payload.rows)}}
    scene = vl_convert.vegalite_to_scenegraph(filled)
    axes = [each for each in scene["scenegraph"]["items"][0]["items"] if each["role"] == "axis"]
    labels = [
        label
        for axis in axes
        if axis["items"][0]["orient"] == "left"
        for part in axis["items"][0]["items"]
        if part["role"] == "axis-label"
        for label in part["items"]
    ]
    return [str(each["text"]) for each in sorted(labels, key=lambda each: each["y"])]
