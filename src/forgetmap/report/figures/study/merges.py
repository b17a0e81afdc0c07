"""Merges compared with their source models."""

from __future__ import annotations

from forgetmap.report.figures import look
from forgetmap.report.figures.figure import Figure, Record, Spec, as_table
from forgetmap.report.figures.panels import panels
from forgetmap.report.figures.study import axes
from forgetmap.study import PairDetail, StudyDetail
from forgetmap.text import counted

ROW = 30
SHIFT = 4
"""Distance of the two effects from the middle of a row."""
WIDTH = 400
"""Width of a panel: two fit side by side on a wide page."""


def merge_figure(detail: StudyDetail) -> Figure | None:
    """Draw forgetting and gains of merges, beside the later of their models."""
    records = _records(detail)
    if not records:
        return None
    finding = next((one for one in detail.result.findings.findings if one.id == "merging"), None)
    count = len({record["merge"] for record in records if not record["later"]})
    alt = f"{counted(count, 'merge')}. {finding.sentence if finding else ''}".strip()
    values = [record["high"] or record["value"] for record in records]
    x = axes.share_axis("value", "share of all items", values)
    most = max(
        len({r["name"] for r in records if r["panel"] == panel})
        for panel in {r["panel"] for r in records}
    )
    spec = panels(alt, records, _layers(x), columns=2, height=ROW * most, names="panel")
    spec["spec"]["width"] = WIDTH
    spec["facet"]["header"]["labelLimit"] = WIDTH + 80
    spec["resolve"] = {"axis": {"x": "independent", "y": "independent"},
                       "scale": {"y": "independent"}}  # fmt: skip
    return Figure(
        name="merges",
        title="Does merging forget less than the later model?",
        caption="One panel per reference model; hollow points are the later model itself, if it "
        "was compared with the same model. Bars are intervals over items." + axes.CLIPPED,
        alt=alt,
        table=as_table(records),
        spec=spec,
    )


def _records(detail: StudyDetail) -> list[Record]:
    merges = {merge.id: merge for merge in detail.study.merges}
    known = {(pair.before, pair.after): pair for pair in detail.pairs}
    records: list[Record] = []
    panels_seen: list[str] = []
    for pair in detail.merges:
        models = merges[pair.after].models
        panel = f"relative to {pair.before}"
        others = [name for name in models if name != pair.before]
        if others and len({m.models for m in merges.values()}) > 1:
            panel = f"{panel} (with {', '.join(others)})"
        if panel not in panels_seen:
            panels_seen.append(panel)
            later = known.get((pair.before, models[-1])) if models else None
            if later is not None:
                records += _effects(panel, later, models[-1], len(panels_seen), 0, later=True)
        number = sum(record["panel"] == look.label_of(panel) for record in records)
        records += _effects(panel, pair, pair.label, len(panels_seen), number + 1, later=False)
    return records


def _effects(
    panel: str, pair: PairDetail, name: str, order: int, rank: int, *, later: bool
) -> list[Record]:
    return [
        {
            "panel": look.label_of(panel),
            "order": order,
            "rank": rank,
            "name": look.label_of(name),
            "merge": pair.after,
            "later": later,
            "effect": axes.NAMES[effect],
            **axes.estimate_record(pair.total, effect),
        }
        for effect in axes.EFFECTS
        if axes.estimate_of(pair.total, effect).value is not None
    ]


def _layers(x: Spec) -> list[Spec]:
    y: Spec = {
        "field": "name", "type": "nominal", "title": None, "sort": {"field": "rank", "op": "min"},
        "axis": look.NAME_AXIS | {"grid": True, "labelLimit": 130},
    }  # fmt: skip
    colour: Spec = {
        "field": "effect", "type": "nominal", "title": None, "legend": {"orient": "top"},
        "scale": {"domain": [axes.NAMES[effect] for effect in axes.EFFECTS],
                  "range": [axes.COLOURS[effect] for effect in axes.EFFECTS]},
    }  # fmt: skip
    own = {"x": x, "y": y, "color": colour}
    tips = [
        {"field": "name", "title": "of"},
        {"field": "effect"},
        {"field": "value", "title": "share", "format": ".1%"},
        {"field": "low", "title": "at least", "format": ".1%"},
        {"field": "high", "title": "at most", "format": ".1%"},
    ]
    layers: list[Spec] = []
    for effect, shift in zip(axes.EFFECTS, (-SHIFT, SHIFT), strict=True):
        this = {"filter": f"datum.effect === '{axes.NAMES[effect]}'"}
        layers += [
            {
                "transform": [this, {"filter": "isValid(datum.low)"}],
                "mark": {"type": "rule", "opacity": 0.6, "yOffset": shift},
                "encoding": own | {"x": x | {"field": "low"}, "x2": {"field": "high"}},
            },
            *(
                {
                    "transform": [this, {"filter": f"{'' if later else '!'}datum.later"}],
                    "mark": {"type": "point", "filled": not later, "size": 70, "opacity": 1,
                             "strokeWidth": 2, "yOffset": shift},
                    "encoding": own | {"tooltip": tips},
                }
                for later in (False, True)
            ),
        ]  # fmt: skip
    return layers
