"""Items recovered by replay in a model that forgot."""

from __future__ import annotations

from forgetmap.lab import RepairResult
from forgetmap.report.figures import look
from forgetmap.report.figures.figure import Figure, Record, Spec, as_table
from forgetmap.report.figures.lab import axes
from forgetmap.text import percent

KINDS = {
    "targeted": "targeted replay",
    "random": "random replay, same size",
    "none": "new examples alone",
}
_COLOURS = [look.KEPT, look.GAINED, look.NEVER]
_SHAPES = ["circle", "square", "diamond"]
_BEFORE = "datum.when === 'before'"
TARGETED, UNTOUCHED = "targeted domains", "other domains"


def recovered(result: RepairResult) -> Figure:
    """Draw the share of the forgotten items that are right again."""
    records = _recovered_records(result)
    means = [record for record in records if record["seed"] is None]
    alt = "; ".join(
        f"{record['kind']} recovered {percent(record['value'])} in {record['where']}"
        for record in means
    )
    x = axes.share_axis("value", "share of the forgotten items that are right again", [0, 1])
    return Figure(
        name="repair_recovered",
        title="Recovery by replay",
        caption=f"Large points are means, small points single seeds. {axes.INTERVALS} Targeted: "
        f"{look.label_of(', '.join(result.domains))}, with the largest losses. Both kinds of "
        f"replay have {result.rows:,} rows; no row is an evaluation item.",
        alt=f"{alt}.",
        table=as_table(records),
        spec=look.base_spec(alt)
        | {
            "data": {"values": records},
            "height": 44 * len(means),
            "layer": _layers(x, "where", [TARGETED, UNTOUCHED]),
        },
    )


def _recovered_records(result: RepairResult) -> list[Record]:
    records: list[Record] = []
    for summary in result.summaries:
        kind = KINDS.get(summary.kind, summary.kind)
        parts = {TARGETED: summary.recovered_targeted, UNTOUCHED: summary.recovered_untouched}
        records += [
            {"where": where, "kind": kind, "seed": None} | axes.shares(estimate)
            for where, estimate in parts.items()
        ]
    for run in result.runs:
        kind = KINDS.get(run.kind, run.kind)
        counts = {
            TARGETED: (run.recovered_targeted, run.forgotten_targeted),
            UNTOUCHED: (run.recovered_untouched, run.forgotten_untouched),
        }
        records += [
            {"where": where, "kind": kind, "seed": run.seed, "value": again / lost,
             "low": None, "high": None}
            for where, (again, lost) in counts.items()
            if lost
        ]  # fmt: skip
    return records


def score_kept(result: RepairResult) -> Figure:
    """Draw whether the repair costs the new task."""
    records: list[Record] = []
    for summary in result.summaries:
        kind = KINDS.get(summary.kind, summary.kind)
        runs = [run for run in result.runs if run.kind == summary.kind]
        before = sum(run.score_before for run in runs) / len(runs) if runs else None
        records += [
            {"when": "before", "kind": kind, "seed": None, "value": before,
             "low": None, "high": None},
            {"when": "after", "kind": kind, "seed": None} | axes.shares(summary.score),
        ]  # fmt: skip
    alt = "; ".join(
        f"{record['kind']} {record['when']} {percent(record['value'])}" for record in records
    )
    ends = axes.domain([record[name] for record in records for name in ("value", "low")])
    x = axes.share_axis("value", "share of the new task known", ends)
    y: Spec = {
        "field": "kind", "type": "nominal", "title": None, "sort": list(KINDS.values()),
        "axis": look.NAME_AXIS,
    }  # fmt: skip
    when: Spec = {
        "field": "when", "type": "nominal", "title": None,
        "scale": {"domain": ["before", "after"],
                  "range": [look.NEVER, look.GAINED]},
        "legend": {"orient": "top"},
    }  # fmt: skip
    return Figure(
        name="repair_score",
        title="Is the new task kept?",
        caption=f"Share of the new examples known before and after the repair. {axes.INTERVALS}",
        alt=f"{alt}.",
        table=as_table(records),
        spec=look.base_spec(alt)
        | {
            "data": {"values": records},
            "height": 46 * len(result.summaries),
            "layer": [
                {
                    "transform": [{"filter": "isValid(datum.low)"}],
                    "mark": {"type": "rule", "strokeWidth": 2},
                    "encoding": {"x": x | {"field": "low"}, "x2": {"field": "high"}, "y": y,
                                 "color": when},
                },
                {
                    "mark": {"type": "point", "opacity": 1, "strokeWidth": 2},
                    "encoding": {"x": x, "y": y, "color": when, "fill": when,
                                 "size": {"condition": {"test": _BEFORE, "value": 190},
                                          "value": 60},
                                 "fillOpacity": {"condition": {"test": _BEFORE, "value": 0},
                                                 "value": 1},
                                 "tooltip": [{"field": "kind"}, {"field": "when"},
                                             {"field": "value", "format": ".1%"}]},
                },
            ],
        },
    )  # fmt: skip


def _layers(x: Spec, rows: str, order: list[str]) -> list[Spec]:
    words = list(KINDS.values())
    own: Spec = {
        "y": {"field": rows, "type": "nominal", "title": None, "sort": order,
              "axis": look.NAME_AXIS},
        "yOffset": {"field": "kind", "scale": {"domain": words, "paddingOuter": 0.3}},
        "color": {"field": "kind", "type": "nominal", "title": None,
                  "scale": {"domain": words, "range": _COLOURS},
                  "legend": axes.legend()},
    }  # fmt: skip
    tips = [
        {"field": "kind"},
        {"field": rows, "title": "where"},
        {"field": "seed"},
        *({"field": name, "format": ".1%"} for name in ("value", "low", "high")),
    ]
    return [
        {
            "transform": [{"filter": "isValid(datum.low)"}],
            "mark": {"type": "rule", "strokeWidth": 2},
            "encoding": own | {"x": x | {"field": "low"}, "x2": {"field": "high"}},
        },
        {
            "transform": [{"filter": "isValid(datum.seed)"}],
            "mark": {"type": "point", "size": 25, "opacity": 0.6},
            "encoding": own | {"x": x, "tooltip": tips},
        },
        {
            "transform": [{"filter": "!isValid(datum.seed)"}],
            "mark": {"type": "point", "filled": True, "size": 110, "opacity": 1},
            "encoding": own
            | {"x": x, "tooltip": tips,
               "shape": {"field": "kind", "scale": {"domain": words, "range": _SHAPES}}},
        },
        {
            "transform": [{"filter": "!isValid(datum.seed)"}],
            "mark": {"type": "text", "dy": -13},
            "encoding": {"y": own["y"], "yOffset": own["yOffset"], "x": x,
                         "text": {"field": "value", "format": ".0%"}},
        },
    ]  # fmt: skip
