"""Accuracy change against forgotten and gained items."""

from __future__ import annotations

from collections.abc import Sequence

from forgetmap.report.figures import look
from forgetmap.report.figures.figure import Figure, Record, Spec, as_table
from forgetmap.report.figures.study import axes
from forgetmap.study import TOTAL, CategoryChange, PairDetail, StudyDetail
from forgetmap.text import share

FORGETTING, TRANSFER, CHANGE = "forgetting", "backward transfer", "accuracy change"
ROW = 24


def pair_changes(
    detail: StudyDetail, category: str = TOTAL, group: str | None = None
) -> Figure | None:
    """Draw every pair of a study, or of a group, in one category."""
    rows = [
        _record(row.name, order, row.pair.category(category) if row.pair else None, _gap(row))
        for order, row in enumerate(axes.declared_rows(detail, group))
    ]
    where = "" if category == TOTAL else f" in {category}"
    return _figure(rows, "changes", f"Accuracy change and what it hides{where}", "pairs")


def category_changes(pair: PairDetail) -> Figure | None:
    """Draw every category of a pair."""
    rows = [
        _record(look.label_of(change.category), order, change)
        for order, change in enumerate(pair.categories)
    ]
    return _figure(rows, "categories", "Forgotten and gained, by category", "categories")


def _gap(row: axes.PairRow) -> str:
    if row.is_head:
        return ""
    return axes.NO_RUN if row.pair is None else "no items"


def _record(name: str, order: int, change: CategoryChange | None, gap: str = "no items") -> Record:
    forgetting, transfer = (axes.estimate_record(change, effect) for effect in axes.EFFECTS)
    lost, gained = (axes.estimate_of(change, effect).value for effect in axes.EFFECTS)
    # Luck affects both equally, so their difference is the accuracy change.
    net = None if lost is None or gained is None else gained - lost
    return {
        "name": name,
        "order": order,
        "forgetting": forgetting["value"],
        "forgetting_low": forgetting["low"],
        "forgetting_high": forgetting["high"],
        "backward_transfer": transfer["value"],
        "backward_transfer_low": transfer["low"],
        "backward_transfer_high": transfer["high"],
        "accuracy_change": net,
        "gap": "" if lost is not None else gap,
    }


def _figure(rows: Sequence[Record], name: str, title: str, noun: str) -> Figure | None:
    known = [row for row in rows if row["forgetting"] is not None]
    if not known:
        return None
    most = max(known, key=lambda row: row["forgetting"])
    hidden = sum(row["accuracy_change"] >= 0 and row["forgetting"] > 0 for row in known)
    alt = (
        f"{len(known)} {noun}; {most['name']} forgot most: {share(most['forgetting'])}. In "
        f"{hidden}, accuracy did not drop although items were forgotten."
    )
    return Figure(
        name=name,
        title=title,
        caption="Bars are shares of all items, adjusted for chance: forgotten to the left, "
        "gained to the right; lines are separate intervals. The diamond is the accuracy "
        "change: gained minus forgotten." + axes.CLIPPED,
        alt=alt,
        table=as_table(list(rows)),
        spec=_spec(alt, list(rows)),
    )


def _spec(alt: str, rows: list[Record]) -> Spec:
    left = axes.top_of([row[key] for row in rows for key in ("forgetting", "forgetting_high")])
    right = axes.top_of(
        [row[key] for row in rows for key in ("backward_transfer", "backward_transfer_high")]
    )
    x: Spec = {
        "type": "quantitative", "title": "forgotten  \N{LEFTWARDS ARROW}  share of all items  "
        "\N{RIGHTWARDS ARROW}  gained",
        "scale": {"domain": [-left, right], "nice": False},
        "axis": {"labelExpr": "format(abs(datum.value), '~%')", "tickCount": 8,
                 "labelFlush": False},
    }  # fmt: skip
    colour = {
        "type": "nominal", "title": None,
        "legend": {"orient": "top", "columns": {"expr": "width < 360 ? 1 : 3"}},
        "scale": {"domain": [FORGETTING, TRANSFER, CHANGE],
                  "range": [look.FORGOTTEN, look.GAINED, look.NEVER]},
    }  # fmt: skip
    return look.base_spec(alt) | {
        "data": {"values": rows},
        "height": {"step": ROW},
        "encoding": {"y": axes.name_axis()},
        "layer": [
            *_bars("forgetting", FORGETTING, "-", x, colour),
            *_bars("backward_transfer", TRANSFER, "", x, colour),
            {"mark": {"type": "rule", "color": look.by_theme(look.TEXT)},
             "encoding": {"x": x | {"datum": 0}, "y": {}}},
            {
                "transform": [{"calculate": f"'{CHANGE}'", "as": "what"},
                              {"filter": "isValid(datum.accuracy_change)"}],
                "mark": {"type": "point", "shape": "diamond", "filled": True, "size": 80,
                         "opacity": 1, "stroke": look.by_theme(look.GROUND), "strokeWidth": 1.2},
                "encoding": {"x": x | {"field": "accuracy_change"},
                             "color": colour | {"field": "what"}, "tooltip": _tips()},
            },
            {
                "transform": [{"filter": "datum.gap"}],
                "mark": {"type": "text", "align": "left", "dx": 6, "fontStyle": "italic",
                         "color": look.NEVER},
                "encoding": {"x": x | {"datum": 0}, "text": {"field": "gap"}},
            },
        ],
    }  # fmt: skip


def _bars(field: str, what: str, sign: str, x: Spec, colour: Spec) -> list[Spec]:
    shown = [
        {"calculate": f"'{what}'", "as": "what"},
        *({"calculate": f"isValid(datum.{name}) ? {sign}datum.{name} : null", "as": f"x_{name}"}
          for name in (field, f"{field}_low", f"{field}_high")),
    ]  # fmt: skip
    limits = [*shown, {"filter": f"isValid(datum.x_{field}_low)"}]
    return [
        {
            "transform": shown,
            "mark": {"type": "bar", "height": {"band": 0.66}, "opacity": 0.85},
            "encoding": {"x": x | {"field": f"x_{field}", "stack": None},
                         "color": colour | {"field": "what"}, "tooltip": _tips()},
        },
        {
            "transform": limits,
            "mark": {"type": "rule", "color": look.by_theme(look.TEXT), "opacity": 0.75},
            "encoding": {"x": x | {"field": f"x_{field}_low"},
                         "x2": {"field": f"x_{field}_high"}},
        },
    ]  # fmt: skip


def _tips() -> list[Spec]:
    shares = {
        "forgetting": "forgetting", "forgetting_low": "at least", "forgetting_high": "at most",
        "backward_transfer": "backward transfer", "backward_transfer_low": "at least ",
        "backward_transfer_high": "at most ",
    }  # fmt: skip
    tips: list[Spec] = [{"field": "name", "title": "of"}]
    tips += [{"field": name, "title": title, "format": ".1%"} for name, title in shares.items()]
    return [*tips, {"field": "accuracy_change", "title": CHANGE, "format": "+.1%"}]
