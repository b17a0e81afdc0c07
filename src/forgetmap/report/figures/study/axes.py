"""Records of pairs, gaps and axes that the figures of a study share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from forgetmap.report.figures import look
from forgetmap.report.figures.figure import Record, Spec
from forgetmap.results import Estimate
from forgetmap.study import CategoryChange, Effect, PairDetail, StudyDetail

EFFECTS: tuple[Effect, ...] = ("forgetting", "backward_transfer")
NAMES: dict[Effect, str] = {"forgetting": "forgetting", "backward_transfer": "backward transfer"}
COLOURS: dict[Effect, str] = {"forgetting": look.FORGOTTEN, "backward_transfer": look.GAINED}
TOPS = (0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8, 1.0)
CLIPPED = " Shares are drawn between 0% and 100%; tables have the full values."
NO_RUN = "no run"
HEAD = "\N{BLACK RIGHT-POINTING SMALL TRIANGLE} "
"""Prefix of the name of a stage among names of pairs."""
NAMES_WIDTH = {"expr": "containerSize()[0] < 500 ? 120 : 250"}
"""Width of names: less on a phone; without a browser there is no container."""


def clip(value: float | None) -> float | None:
    """Clip a share for drawing."""
    return None if value is None else min(max(value, 0.0), 1.0)


def estimate_of(change: CategoryChange | None, effect: Effect) -> Estimate:
    """Return the estimate of an effect; missing if the pair does not have the category."""
    if change is None:
        return Estimate.missing("", "no item of this category")
    return change.forgetting if effect == "forgetting" else change.backward_transfer


def top_of(values: Sequence[float | None]) -> float:
    """Return a round share above all of these, at most 1."""
    most = max((value for value in values if value is not None), default=0.0)
    return next((top for top in TOPS if most <= top), 1.0)


def share_axis(field: str, title: str | None, values: Sequence[float | None]) -> Spec:
    """Return an axis from 0 to a round share above the largest value."""
    return {
        "field": field, "type": "quantitative", "title": title,
        "scale": {"domain": [0, top_of(values)], "nice": False},
        "axis": {"format": look.SHARE, "tickCount": 5, "labelFlush": False},
    }  # fmt: skip


def name_axis(field: str = "name") -> Spec:
    """Return an axis of names on the left, in the order of the study."""
    return {
        "field": field, "type": "nominal", "title": None,
        "sort": {"field": "order", "op": "min"},
        "axis": look.NAME_AXIS | {
            "grid": False, "labelLimit": NAMES_WIDTH,
            "labelFontWeight": {
                "condition": {"test": f"indexof(datum.value, '{HEAD}') === 0", "value": "bold"},
                "value": "normal",
            },
        },
    }  # fmt: skip


def pair_names(pairs: Sequence[PairDetail]) -> list[str]:
    """Return the name of each pair, with the model before if labels repeat."""
    labels = [pair.label for pair in pairs]
    full = [
        f"{pair.label} from {pair.before}" if labels.count(pair.label) > 1 else pair.label
        for pair in pairs
    ]
    return [
        look.label_of(f"{name} ({index + 1})" if full.count(name) > 1 else name)
        for index, name in enumerate(full)
    ]


class PairRow(NamedTuple):
    """A row of a figure.

    Attributes:
        name: name of the pair, or of its stage.
        group: name of the stage.
        pair: the pair; None if a model has no run.
        is_head: whether it is the heading of a stage.
    """

    name: str
    group: str
    pair: PairDetail | None = None
    is_head: bool = False


def declared_rows(detail: StudyDetail, group: str | None = None) -> list[PairRow]:
    """Return every declared pair by stage; several stages have headings."""
    known = {(pair.before, pair.after): pair for pair in detail.pairs}
    names = dict(zip(known, pair_names(detail.pairs), strict=True))
    groups = detail.groups if group is None else [group]
    rows = []
    for stage in groups:
        if len(groups) > 1:
            rows.append(PairRow(f"{HEAD}{look.label_of(stage)}", stage, is_head=True))
        for pair in detail.study.pairs:
            if pair.group == stage:
                key = (pair.before, pair.after)
                name = names.get(key, look.label_of(pair.label))
                rows.append(PairRow(name, stage, known.get(key)))
    return rows


def estimate_record(change: CategoryChange | None, effect: Effect) -> Record:
    """Return value and bounds, clipped for drawing."""
    estimate = estimate_of(change, effect)
    return {
        "value": clip(estimate.value),
        "low": clip(estimate.low),
        "high": clip(estimate.high),
    }
