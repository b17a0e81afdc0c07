"""Forgetting against model size, and against the amount of training data."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from forgetmap.report.figures import look
from forgetmap.report.figures.figure import Figure, Record, Spec, as_table
from forgetmap.report.figures.panels import panels
from forgetmap.report.figures.study import axes
from forgetmap.study import PairDetail, StudyDetail
from forgetmap.text import counted

OTHERS = "other models"
HEIGHT = 260
SIZE_LABEL = (
    "datum.value >= 1 ? format(datum.value, '~g') + 'B' : format(datum.value * 1e3, '.3~g') + 'M'"
)
SCALES = ("low", "high")
MIN_SIZES = 2
SPREAD = 0.7
"""Spread of the points of one scale of data, relative to the distance of scales."""


def size_figure(detail: StudyDetail) -> Figure | None:
    """Draw effects against size; similar models are joined by lines."""
    records = _size_records(detail)
    trends = {record["line"] for record in records if record["line"]}
    if not trends:
        return None
    finding = next((one for one in detail.result.findings.findings if one.id == "size"), None)
    pairs = len({record["pair"] for record in records})
    alt = (
        f"{counted(pairs, 'pair')} by size, {len(trends)} series"
        f"{'' if finding is None else f': {finding.sentence}'}"
    )
    y = axes.share_axis("value", "share of all items", [r["high"] or r["value"] for r in records])
    return Figure(
        name="sizes",
        title="Do larger models forget less?",
        caption="Each point is a pair, by the size of its model after; colours are stages, "
        "shapes are series. Lines connect comparable models of a stage; bars are intervals "
        "over items." + axes.CLIPPED,
        alt=alt,
        table=as_table(records),
        spec=_with_legends_below(
            panels(alt, records, _size_layers(_size_axis(records), y, records), columns=2,
                   height=HEIGHT, names="effect")
        ),
    )  # fmt: skip


def _with_legends_below(spec: Spec) -> Spec:
    """Put one legend below the other: side by side they are wider than the page."""
    below = {"layout": {"bottom": {"anchor": "start", "direction": "vertical"}}}
    config = spec["config"]
    return spec | {"config": config | {"legend": config["legend"] | below}}


def _size_axis(records: list[Record]) -> Spec:
    sizes = sorted({record["size"] for record in records})
    return {
        "field": "size", "type": "quantitative", "title": "size, parameters",
        "scale": {"type": "log", "base": 2, "domain": [sizes[0] / 1.15, sizes[-1] * 1.15],
                  "nice": False},
        "axis": {"values": sizes, "labelExpr": SIZE_LABEL, "grid": False, "labelFlush": False,
                 "labelOverlap": True},
    }  # fmt: skip


def _size_layers(x: Spec, y: Spec, records: list[Record]) -> list[Spec]:
    own = {"x": x, "y": y, "color": _by("stage", records, look.MODELS)}
    own["color"]["legend"] |= {"symbolType": "circle"}
    return [
        {
            "transform": [{"filter": "datum.line"}],
            "mark": {"type": "line", "strokeWidth": 2, "opacity": 0.75},
            "encoding": own | {"order": {"field": "size"}, "detail": {"field": "line"}},
        },
        {
            "transform": [{"filter": "isValid(datum.low)"}],
            "mark": {"type": "rule", "opacity": 0.45},
            "encoding": own | {"y": y | {"field": "low"}, "y2": {"field": "high"}},
        },
        {
            "mark": {"type": "point", "filled": True, "size": 70, "opacity": 1},
            "encoding": own
            | {"shape": _by("series", records, look.SHAPES), "tooltip": _tips({"size": "size"})},
        },
    ]


def _by(field: str, records: list[Record], marks: list[str]) -> Spec:
    """Return a mark for each value of a field; marks repeat if there are too few."""
    names = list(dict.fromkeys(record[field] for record in records))
    return {
        "field": field, "type": "nominal", "title": None,
        "scale": {"domain": names,
                  "range": [marks[n % len(marks)] for n in range(len(names))]},
        "legend": {"orient": "bottom", "columns": 3, "labelLimit": 300},
    }  # fmt: skip


def _tips(more: dict[str, str]) -> list[Spec]:
    tips: list[Spec] = [{"field": "pair"}, {"field": "stage"}]
    tips += [{"field": name, "title": title} for name, title in more.items()]
    tips.append({"field": "value", "title": "share", "format": ".1%"})
    tips.append({"field": "low", "title": "at least", "format": ".1%"})
    return [*tips, {"field": "high", "title": "at most", "format": ".1%"}]


def _size_records(detail: StudyDetail) -> list[Record]:
    sizes: dict[str, set[float]] = defaultdict(set)
    entries: list[tuple[str, str, PairDetail, float]] = []
    for name, pair in zip(axes.pair_names(detail.pairs), detail.pairs, strict=True):
        after = detail.study.model(pair.after)
        if after.billions is None or pair.total.forgetting.value is None:
            continue
        entries.append((name, after.made_like or OTHERS, pair, after.billions))
        if after.made_like:
            sizes[f"{after.made_like}, {pair.group}"].add(after.billions)
    return [
        {
            "effect": axes.NAMES[effect],
            "order": axes.EFFECTS.index(effect),
            "pair": name,
            "stage": look.label_of(pair.group),
            "series": look.label_of(series) if line else OTHERS,
            "line": line,
            "size": size,
            **axes.estimate_record(pair.total, effect),
        }
        for effect in axes.EFFECTS
        for name, series, pair, size in entries
        for line in [_line(f"{series}, {pair.group}", sizes)]
    ]


def _line(name: str, sizes: Mapping[str, set[float]]) -> str:
    """Return the line of a pair; empty if there is only one size."""
    return name if len(sizes.get(name, ())) >= MIN_SIZES else ""


def data_figure(detail: StudyDetail) -> Figure | None:
    """Draw effects for little and much data, one point per pair."""
    records = _data_records(detail)
    if len({record["data"] for record in records}) < len(SCALES):
        return None
    means = _means(records)
    finding = next((one for one in detail.result.findings.findings if one.id == "data"), None)
    alt = "; ".join(
        f"{mean['effect']} with {mean['data']}: mean {mean['value']:.1%}" for mean in means
    ) + (f". {finding.sentence}" if finding else ".")
    values = [record["high"] or record["value"] for record in records]
    y = axes.share_axis("value", "share of all items", values)
    return Figure(
        name="data_scale",
        title="Does less data cause less forgetting?",
        caption="Each point is a pair, by the amount of data of its model after; bars are "
        "intervals over items, and the dash is the mean. Pairs next to each other differ in "
        "more than their data." + axes.CLIPPED,
        alt=alt,
        table=as_table(records),
        spec=panels(alt, [*records, *means], _data_layers(y, records), columns=2, height=HEIGHT,
                    names="effect"),
    )  # fmt: skip


def _data_records(detail: StudyDetail) -> list[Record]:
    entries: dict[str, list[tuple[str, PairDetail]]] = {scale: [] for scale in SCALES}
    for name, pair in zip(axes.pair_names(detail.pairs), detail.pairs, strict=True):
        scale = detail.study.model(pair.after).data
        if scale is not None and pair.total.forgetting.value is not None:
            entries[scale].append((name, pair))
    return [
        {
            "effect": axes.NAMES[effect],
            "order": axes.EFFECTS.index(effect),
            "pair": name,
            "stage": look.label_of(detail.study.model(pair.after).stage or pair.group),
            "data": f"{scale} data",
            # Side by side around the position of their scale.
            "across": SCALES.index(scale) + SPREAD * ((number + 0.5) / len(pairs) - 0.5),
            **axes.estimate_record(pair.total, effect),
        }
        for effect in axes.EFFECTS
        for scale, pairs in entries.items()
        for number, (name, pair) in enumerate(pairs)
    ]


def _means(records: list[Record]) -> list[Record]:
    groups: dict[tuple[str, str], list[Record]] = defaultdict(list)
    for record in records:
        groups[record["effect"], record["data"]].append(record)
    return [
        {
            **members[0],
            "pair": f"mean of {len(members)}",
            "value": sum(one["value"] for one in members) / len(members),
            "low": None,
            "high": None,
            "across": round(members[0]["across"]) - SPREAD / 2,
            "until": round(members[0]["across"]) + SPREAD / 2,
        }
        for members in groups.values()
    ]


def _data_layers(y: Spec, records: list[Record]) -> list[Spec]:
    x: Spec = {
        "field": "across", "type": "quantitative", "title": None,
        "scale": {"domain": [-0.5, 1.5], "nice": False},
        "axis": {"values": [0, 1], "labelExpr": "datum.value ? 'high data' : 'low data'",
                 "grid": False, "ticks": False, "labelFlush": False},
    }  # fmt: skip
    own = {"x": x, "y": y, "color": _by("stage", records, look.MODELS)}
    single = {"filter": "!isValid(datum.until)"}
    mean_tips = [{"field": "pair", "title": "of"}, {"field": "value", "format": ".1%"}]
    return [
        {
            "transform": [single, {"filter": "isValid(datum.low)"}],
            "mark": {"type": "rule", "opacity": 0.5},
            "encoding": own | {"y": y | {"field": "low"}, "y2": {"field": "high"}},
        },
        {
            "transform": [single],
            "mark": {"type": "point", "filled": True, "size": 70, "opacity": 0.95},
            "encoding": own | {"tooltip": _tips({"data": "data"})},
        },
        {
            "transform": [{"filter": "isValid(datum.until)"}],
            "mark": {"type": "rule", "strokeWidth": 2.5, "color": look.by_theme(look.TEXT)},
            "encoding": {"x": x, "x2": {"field": "until"}, "y": y, "tooltip": mean_tips},
        },
    ]
