"""Distance of weights from the base, and the benefit of merging against it."""

from __future__ import annotations

from forgetmap.merge import WeightDrift
from forgetmap.report.figures import look
from forgetmap.report.figures.drift.axes import NAME_AXIS
from forgetmap.report.figures.figure import Figure, Record, Spec, as_table
from forgetmap.report.figures.sweep import axes
from forgetmap.sweep import SweepResult
from forgetmap.text import percent


def weight_drift_figure(drift: WeightDrift) -> Figure:
    """Draw the change of each layer and each kind of module, for one pair."""
    records = _bars(0, drift, "layers") + _bars(0, drift, "kinds")
    figure = _bar_figure(records, "weight_drift", "Weight change")
    assert figure is not None  # noqa: S101  # every tensor has a kind
    return figure


def weights(result: SweepResult, of: str) -> Figure | None:
    """Draw the change of `layers` or `kinds` of modules."""
    records = [
        bar
        for index, pair in enumerate(result.pairs)
        if pair.drift is not None
        for bar in _bars(index, pair.drift, of)
    ]
    title = "Weight change by layer" if of == "layers" else "Weight change by module type"
    return _bar_figure(records, f"drift_{of}", title)


def _bars(index: int, drift: WeightDrift, of: str) -> list[Record]:
    groups = drift.layers if of == "layers" else drift.kinds
    return [
        {
            "comparison": index,
            "name": look.label_of(group.name),
            "moved": group.relative,
            "cosine": group.cosine,
            "effective_rank": group.effective_rank,
            "rank_share": group.rank_share,
            "parameters": group.parameters,
        }
        for group in groups
    ]


def _bar_figure(records: list[Record], name: str, title: str) -> Figure | None:
    known = [record for record in records if record["moved"] is not None]
    if not known:
        return None
    most = max(known, key=lambda record: record["moved"])
    alt = f"{title}: most {most['name']}, by {percent(most['moved'], 2)} of its length."
    y: Spec = {
        "field": "name", "type": "nominal", "title": None, "sort": None,
        "axis": NAME_AXIS | {"grid": False},
    }  # fmt: skip
    x: Spec = {
        "field": "moved", "type": "quantitative", "title": "relative weight change",
        "axis": axes.SHARES,
    }  # fmt: skip
    tips = [
        {"field": "name", "title": "of"},
        {"field": "moved", "format": ".2%"},
        {"field": "cosine", "format": ".5f"},
        {"field": "effective_rank", "title": "effective rank", "format": ",.1f"},
        {"field": "rank_share", "title": "share of the largest possible rank", "format": ".0%"},
        {"field": "parameters", "format": ","},
    ]
    return Figure(
        name=name,
        title=title,
        caption="Norm of the difference divided by the norm of the base; the number is the "
        "effective rank of the difference, mean over its matrices.",
        alt=alt,
        table=as_table(known),
        spec=axes.spec(alt)
        | {
            "data": {"values": known},
            "height": {"step": 24 if len(known) < 40 else 14},
            "transform": [axes.SELECTED_PAIR],
            "encoding": {"y": y, "x": x},
            "layer": [
                {"mark": {"type": "bar", "color": look.GAINED, "height": {"band": 0.7}},
                 "encoding": {"tooltip": tips}},
                {
                    "transform": [
                        {"filter": "isValid(datum.effective_rank)"},
                        {"calculate": "'rank ' + format(datum.effective_rank, ',.0f')",
                         "as": "rank"},
                    ],
                    "mark": {"type": "text", "align": "left", "dx": 4, "fontSize": 11},
                    "encoding": {"text": {"field": "rank"}},
                },
            ],
        },
    )  # fmt: skip


def benefits(result: SweepResult) -> Figure | None:
    """Draw benefit against drift, one point per tuned model."""
    records = [
        {
            "model": look.label_of(pair.name),
            "moved": pair.drift.total.relative,
            "benefit": pair.greatest_benefit.value,
            "low": pair.greatest_benefit.low,
            "high": pair.greatest_benefit.high,
        }
        for pair in result.pairs
        if pair.drift is not None and pair.greatest_benefit.value is not None
    ]
    if not records:
        return None
    alt = result.correlation.words
    x: Spec = {
        "field": "moved", "type": "quantitative", "title": "relative weight change",
        "axis": axes.SHARES,
    }  # fmt: skip
    y: Spec = {
        "field": "benefit", "type": "quantitative", "title": "largest benefit of merging",
        "axis": axes.SHARES | {"labelExpr": "replace(datum.label, '-', '\N{MINUS SIGN}')"},
    }  # fmt: skip
    return Figure(
        name="drift_benefit",
        title="Does merging help where the weights moved less?",
        caption=f"{alt} Benefit: gains kept and forgetting recovered, beyond mixing the answers "
        "of both parents, for the best of all merges; bars are 95% intervals of that "
        "maximum.",
        alt=alt,
        table=as_table(records),
        spec=axes.spec(alt)
        | {
            "data": {"values": records},
            "height": axes.HEIGHT,
            "layer": _benefit_layers(x, y),
        },
    )


def _benefit_layers(x: Spec, y: Spec) -> list[Spec]:
    """Return intervals, points and names beside the line of no benefit."""
    tips = [{"field": "model"}]
    tips += [{"field": record, "format": ".1%"} for record in ("moved", "benefit", "low", "high")]
    return [
        {"mark": look.ZERO_MARK, "encoding": {"y": {"datum": 0}}},
        {"mark": {"type": "rule", "opacity": 0.5, "color": look.GAINED},
         "encoding": {"x": x, "y": y | {"field": "low"}, "y2": {"field": "high"}}},
        {"mark": {"type": "point", "filled": True, "size": 90, "opacity": 1,
                  "color": look.GAINED},
         "encoding": {"x": x, "y": y, "tooltip": tips}},
        {"mark": {"type": "text", "align": "left", "dx": 8, "dy": -8, "fontSize": 11},
         "encoding": {"x": x, "y": y, "text": {"field": "model"},
                      "color": {"value": look.by_theme(look.TEXT)}}},
    ]  # fmt: skip
