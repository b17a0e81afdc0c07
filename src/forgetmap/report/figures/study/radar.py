"""One pair of radar charts for the pairs of a stage, with any number of models before."""

from __future__ import annotations

from collections.abc import Sequence

from forgetmap.report.figures import look
from forgetmap.report.figures.comparison.radar import (
    MAX_SPOKES,
    MIN_SPOKES,
    make_models,
    make_spokes,
    radar_spec,
)
from forgetmap.report.figures.figure import Figure, Record, as_table
from forgetmap.report.figures.study import axes
from forgetmap.study import TOTAL, PairDetail, StudyDetail
from forgetmap.text import share

LEVEL = "category"
ROWS = "pairs"
"""Name of the data set; the page fills the one called `rows`."""


def stage_radars(detail: StudyDetail, group: str) -> list[Figure]:
    """Draw as many radar charts as keep the pairs of a stage distinct, with the same axes."""
    names = axes.pair_names(detail.pairs)
    pairs = [
        (name, pair) for name, pair in zip(names, detail.pairs, strict=True) if pair.group == group
    ]
    spokes = [
        name
        for name in detail.categories
        if name != TOTAL and any(pair.category(name) for _, pair in pairs)
    ]
    if not pairs or not MIN_SPOKES <= len(spokes) <= MAX_SPOKES:
        return []
    records = _records(pairs, spokes)
    most: dict[str, float] = {
        effect: axes.top_of([r["value"] for r in records if r["direction"] == effect])
        for effect in axes.EFFECTS
    }
    size = len(look.MODELS)
    parts = [range(start, min(start + size, len(pairs))) for start in range(0, len(pairs), size)]
    return [
        _figure(group, pairs, spokes, records, part, number, len(parts), most)
        for number, part in enumerate(parts, start=1)
    ]


def _records(pairs: Sequence[tuple[str, PairDetail]], spokes: Sequence[str]) -> list[Record]:
    return [
        {
            "comparison": index,
            "pair": name,
            "level": LEVEL,
            "group": look.label_of(category),
            "direction": effect,
            "value": axes.estimate_record(pair.category(category), effect)["value"],
            "low": None,
            "high": None,
        }
        for index, (name, pair) in enumerate(pairs)
        for category in spokes
        for effect in axes.EFFECTS
    ]


def _figure(
    group: str,
    pairs: Sequence[tuple[str, PairDetail]],
    spokes: Sequence[str],
    records: list[Record],
    part: range,
    number: int,
    parts: int,
    most: dict[str, float],
) -> Figure:
    drawn = [record for record in records if record["comparison"] in part]
    greatest = max(
        (r for r in drawn if r["direction"] == "forgetting" and r["value"] is not None),
        key=lambda record: record["value"],
        default=None,
    )
    words = (
        "no data"
        if greatest is None
        else f"most is forgotten by {greatest['pair']} in {greatest['group']}, "
        f"{share(greatest['value'])}"
    )
    alt = f"{len(part)} pairs over {len(spokes)} categories: {words}."
    names = {index: pairs[index][0] for index in part}
    labels = [look.label_of(name) for name in spokes]
    return Figure(
        name="radar" if parts == 1 else f"radar_{number}",
        title=f"What pairs of {group} forgot and gained" + f", {number} of {parts}" * (parts > 1),
        caption="One line per pair, for all models before; further out is more. A gap in a line "
        "is a category without data, never 0." + axes.CLIPPED,
        alt=alt,
        table=as_table(drawn),
        spec=radar_spec(
            alt,
            make_spokes(labels, LEVEL),
            make_models(names),
            signals=[look.DARK],
            rows={"name": ROWS, "values": drawn},
            most=most,
        ),
    )
