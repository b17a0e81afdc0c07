"""Figures of a watched training: curves over steps, alarms, the peak, and gaps."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from forgetmap.report.figures import look
from forgetmap.report.figures.figure import Figure, Record, Spec, as_table
from forgetmap.report.figures.panels import panels
from forgetmap.report.payloads.watch import peak_of, worst_of
from forgetmap.text import counted, percent
from forgetmap.train import WatchGroup, WatchHistory, WatchLook

HEIGHT = 300
LOW_HEIGHT = 220
MISSING_LOOKS = ("probe", "budget")
"""Kinds of gaps with a missing look, where curves are broken."""
FORGOTTEN, AT_LEAST, GAINED = "forgotten", "lost at least", "gained"
FROM_START, TO_START = "KL(start || now)", "KL(now || start)"
ACCURACY = "accuracy"
Pick = Mapping[str, Callable[[WatchGroup], float | None]]
_SHARES: Pick = {
    FORGOTTEN: lambda group: group.forgotten,
    AT_LEAST: lambda group: group.lost_at_least,
    GAINED: lambda group: group.gained,
}
_KL: Pick = {
    TO_START: lambda group: group.kl_to_start,
    FROM_START: lambda group: group.kl_from_start,
}
_COLOURS = {FORGOTTEN: look.FORGOTTEN, AT_LEAST: look.FORGOTTEN, GAINED: look.GAINED}
_DASHES = {FORGOTTEN: [1, 0], AT_LEAST: [4, 3], GAINED: [1, 0]}


def watch_figures(history: WatchHistory) -> list[Figure | None]:
    """Draw all figures of one training."""
    return [curve(history), groups(history), accuracy(history), divergence(history)]


def _total(look_: WatchLook) -> WatchGroup:
    return look_.total


def _category(name: str, look_: WatchLook) -> WatchGroup | None:
    return look_.categories.get(name)


def _records(
    history: WatchHistory, pick: Pick, group_of: Callable[[WatchLook], WatchGroup | None] = _total
) -> list[Record]:
    """Return records in long form, with an empty one for a missing look, which breaks the line."""
    places: list[tuple[int, WatchGroup | None]] = [
        (look_.step, group_of(look_)) for look_ in history.curve
    ]
    steps = {step for step, _ in places}
    places += [(step, None) for step in missing_steps(history) if step not in steps]
    return [
        {"step": step, "what": what, "value": None if group is None else value(group)}
        for what, value in pick.items()
        for step, group in sorted(places, key=lambda place: place[0])
    ]


def missing_steps(history: WatchHistory) -> list[int]:
    """Return the steps of missing looks."""
    return sorted({gap.step for gap in history.gaps if gap.kind in MISSING_LOOKS})


def step_axis(*histories: WatchHistory) -> Spec:
    """Return an axis from the start to the last look of any training."""
    last = max([seen.step for history in histories for seen in history.curve], default=1)
    return {
        "field": "step", "type": "quantitative", "title": "training step",
        "scale": {"domain": [0, max(last, 1)], "nice": False},
        "axis": {"grid": False, "labelFlush": False, "tickCount": 6, "format": "~s"},
    }  # fmt: skip


def share_axis(title: str, most: float) -> Spec:
    """Return an axis from 0 to a round share above the largest value, at most 1."""
    top = next(end for end in (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8, 1.0) if most <= end)
    return {
        "field": "value", "type": "quantitative", "title": title,
        "scale": {"domain": [0, top], "nice": False},
        "axis": {"format": look.SHARE, "tickCount": 5},
    }  # fmt: skip


def _most(records: list[Record]) -> float:
    return min(1.0, max((r["value"] for r in records if r["value"] is not None), default=0.0))


def _by_what(colours: Mapping[str, str]) -> Spec:
    return {
        "field": "what", "type": "nominal", "title": None,
        "scale": {"domain": list(colours), "range": list(colours.values())},
        "legend": {"orient": "top", "symbolType": "stroke", "symbolSize": 260,
                   "symbolStrokeWidth": 2.5},
    }  # fmt: skip


def _dash() -> Spec:
    scale = {"domain": list(_DASHES), "range": list(_DASHES.values())}
    return {"field": "what", "type": "nominal", "title": None, "scale": scale,
            "legend": {"orient": "top", "symbolType": "stroke", "symbolSize": 260,
                       "symbolStrokeWidth": 2.5}}  # fmt: skip


def _lines(x: Spec, y: Spec, colours: Mapping[str, str], *, dashes: bool = False) -> list[Spec]:
    own: Spec = {"x": x, "y": y, "color": _by_what(colours)}
    written = ".1%" if y["axis"]["format"] == look.SHARE else ".3g"
    tips = [{"field": "step"}, {"field": "what"}, {"field": "value", "format": written}]
    return [
        {
            "mark": {"type": "line", "strokeWidth": 2.2},
            "encoding": own | ({"strokeDash": _dash()} if dashes else {}),
        },
        {
            "transform": [{"filter": f"isValid(datum.value) && datum.what !== '{AT_LEAST}'"}],
            "mark": {"type": "point", "filled": True, "size": 26, "opacity": 1},
            "encoding": own | {"tooltip": tips},
        },
    ]


def _marks(history: WatchHistory, x: Spec, *, words: bool = True) -> list[Spec]:
    """Return alarms as lines and missing looks as bands; the first of each kind has a label."""
    layers: list[Spec] = []
    gaps = [_band(history, step) for step in missing_steps(history)]
    if gaps:
        layers.append(
            {
                "data": {"values": gaps},
                "mark": {"type": "rect", "color": look.NEVER, "opacity": 0.16},
                "encoding": {"x": x | {"field": "from"}, "x2": {"field": "to"}},
            }
        )
        layers += [_word(gaps[:1], x, "no look", "center", 0)] if words else []
    rang = [{"step": alarm.step, "middle": alarm.step} for alarm in history.alarms]
    if rang:
        layers.append(
            {
                "data": {"values": rang},
                "mark": {"type": "rule", "strokeDash": [5, 3], "strokeWidth": 1.5,
                         "color": look.by_theme(look.TEXT)},
                "encoding": {"x": x},
            }
        )  # fmt: skip
        layers += [_word(rang[:1], x, "alarm", "left", 4)] if words else []
    return layers


def _band(history: WatchHistory, step: int) -> Record:
    """Return the band between the looks before and after a gap."""
    steps = [look_.step for look_ in history.curve]
    before = max([s for s in steps if s < step], default=step)
    after = min([s for s in steps if s > step], default=step)
    return {"step": step, "from": before, "to": after, "middle": (before + after) / 2}


def _word(values: list[Record], x: Spec, text: str, align: str, dx: int) -> Spec:
    return {
        "data": {"values": values},
        "mark": {"type": "text", "align": align, "dx": dx, "y": 9, "text": text},
        "encoding": {"x": x | {"field": "middle"}},
    }


def _notes(history: WatchHistory) -> str:
    notes = ""
    if missing_steps(history):
        notes += " Grey bands: no look was taken."
    if history.alarms:
        notes += " Dashed vertical line: the alarm."
    left = sum(look_.abandoned for look_ in history.looks)
    if left:
        notes += f" {counted(left, 'look')} before a return to an older checkpoint are left out."
    return notes


def curve(history: WatchHistory) -> Figure | None:
    """Draw forgotten and gained items, with the certified part of forgetting."""
    records = _records(history, _SHARES)
    if not any(record["value"] is not None for record in records):
        return None
    margin = history.rule.margin
    x = step_axis(history)
    y = share_axis("share of all items", max(_most(records), min(1.0, margin)))
    layers = [*_marks(history, x), *_margin(margin, y), *_lines(x, y, _COLOURS, dashes=True)]
    peak = peak_of(history)
    if peak:
        layers += _peak(peak, x, y)
    return Figure(
        name="watch_forgotten",
        title="Forgetting during training",
        caption=f"{history.items:,} items, evaluated repeatedly during training. Dashed: lower "
        "bound of forgetting, valid for all looks together. The dotted line is the margin "
        f"({percent(margin)}); the alarm is raised when the dashed curve crosses "
        f"it.{_notes(history)}",
        alt=_curve_words(history),
        table=as_table(records),
        spec=look.base_spec(_curve_words(history))
        | {"data": {"values": records}, "height": HEIGHT, "layer": layers},
    )


def _curve_words(history: WatchHistory) -> str:
    last = history.curve[-1]
    words = f"At step {last.step:,} {percent(last.total.forgotten)} were forgotten"
    peak = peak_of(history)
    if peak:
        words += f", after a peak of {percent(peak.total.forgotten)} at step {peak.step:,}"
    first = history.alarms[0] if history.alarms else None
    return f"{words}; {f'alarm at step {first.step:,}' if first else 'no alarm'}."


def _margin(margin: float, y: Spec) -> list[Spec]:
    return [
        {
            "data": {"values": [{"value": min(1.0, margin)}]},
            "mark": {"type": "rule", "strokeDash": [2, 4], "color": look.by_theme(look.TEXT)},
            "encoding": {"y": y},
        }
    ]


def _peak(peak: WatchLook, x: Spec, y: Spec) -> list[Spec]:
    value = peak.total.forgotten or 0.0
    point = [{"step": peak.step, "value": value, "words": f"peak {percent(value)}"}]
    return [
        {
            "data": {"values": point},
            "mark": {"type": "point", "size": 150, "strokeWidth": 2, "filled": False,
                     "color": look.FORGOTTEN, "opacity": 1},
            "encoding": {"x": x, "y": y},
        },
        {
            "data": {"values": point},
            "mark": {"type": "text", "align": "left", "dx": 12, "dy": -6, "fontWeight": 600},
            "encoding": {"x": x, "y": y, "text": {"field": "words"}},
        },
    ]  # fmt: skip


def groups(history: WatchHistory) -> Figure | None:
    """Draw one small chart per category, the largest losses first."""
    names = list(dict.fromkeys(name for look_ in history.curve for name in look_.categories))
    if len(names) < 2:  # one category equals all items
        return None
    lost = {name: worst_of(history, name) for name in names}
    order = sorted(names, key=lambda name: -lost[name])
    records = [
        record | {"group": look.label_of(name), "order": place}
        for place, name in enumerate(order)
        for record in _records(history, _SHARES, partial(_category, name))
    ]
    x = step_axis(history) | {"title": None}
    x["axis"] = x["axis"] | {"tickCount": 3}
    y = share_axis("share of items", max(_most(records), min(1.0, history.rule.margin)))
    y["axis"] = y["axis"] | {"tickCount": 4}
    alt = f"The largest loss is in {order[0]}: {percent(lost[order[0]])} at its worst."
    return Figure(
        name="watch_categories",
        title="Forgetting during training, by category",
        caption="One panel per category over the training steps; the largest loss comes first. "
        "Dashed vertical line: the alarm of this category.",
        alt=alt,
        table=as_table(records),
        spec=panels(
            alt,
            [*records, *_bells(history, order)],
            [*_lines(x, y, _COLOURS, dashes=True), *_margin(history.rule.margin, y), _bell(x)],
            columns=3,
            height=110,
            names="group",
        ),
    )


def _bells(history: WatchHistory, order: list[str]) -> list[Record]:
    """Return the step of the first alarm of each category."""
    first: dict[str, int] = {}
    for alarm in history.alarms:
        for name in alarm.groups:
            first.setdefault(name, alarm.step)
    return [
        {"step": first[name], "what": None, "value": None, "bell": True,
         "group": look.label_of(name), "order": place}
        for place, name in enumerate(order)
        if name in first
    ]  # fmt: skip


def _bell(x: Spec) -> Spec:
    return {
        "transform": [{"filter": "datum.bell"}],
        "mark": {"type": "rule", "strokeDash": [5, 3], "color": look.by_theme(look.TEXT)},
        "encoding": {"x": x},
    }


def accuracy(history: WatchHistory) -> Figure | None:
    """Draw accuracy, which hides forgetting if as much was gained."""
    records = _records(history, {ACCURACY: lambda group: group.accuracy})
    if not any(record["value"] is not None for record in records):
        return None
    x, y = step_axis(history), share_axis("accuracy, all items", 1.0)
    alt = f"Accuracy ends at {percent(history.curve[-1].total.accuracy)}."
    layers = [*_marks(history, x, words=False), *_lines(x, y, {ACCURACY: look.KEPT})]
    return Figure(
        name="watch_accuracy",
        title="Accuracy during training",
        caption=f"Accuracy on the same items.{_notes(history)}",
        alt=alt,
        table=as_table(records),
        spec=look.base_spec(alt)
        | {"data": {"values": records}, "height": LOW_HEIGHT, "layer": layers},
    )


def divergence(history: WatchHistory) -> Figure | None:
    """Draw the divergence of answers from the start model."""
    records = _records(history, _KL)
    if not any(record["value"] is not None for record in records):
        return None
    x = step_axis(history)
    y: Spec = {
        "field": "value", "type": "quantitative", "title": "nats per answer token",
        "axis": {"tickCount": 5, "format": "~g"},
    }  # fmt: skip
    colours = {TO_START: "#CC79A7", FROM_START: "#E69F00"}
    last = history.curve[-1].total.kl_to_start
    alt = "Divergence of the answers from those of the start model."
    alt += "" if last is None else f" At the end {last:.3g} nats."
    exact = (
        "" if history.kl_is_exact else " Rare tokens are grouped, so each value is a lower bound."
    )
    layers = [*_marks(history, x, words=False), *_lines(x, y, colours)]
    return Figure(
        name="watch_kl",
        title="Distance from the start model",
        caption=f"KL over the tokens of the right answers, in both directions.{exact}"
        f"{_notes(history)}",
        alt=alt,
        table=as_table(records),
        spec=look.base_spec(alt)
        | {"data": {"values": records}, "height": LOW_HEIGHT, "layer": layers},
    )
