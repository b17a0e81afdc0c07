"""Rank of a pair among the published pairs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import Field

from forgetmap.comparison import compare
from forgetmap.results import Notice, Value
from forgetmap.study.pair_table import TOTAL, Effect
from forgetmap.study.published import PublishedPair, published_pairs, published_study
from forgetmap.study.words import points
from forgetmap.text import Blocks, Line, Sheet

PLACE_VERSION = 1
_ROLLED_TOTAL = "Total"


class PlacedValue(Value):
    """Rank of one value among the published ones."""

    category: str
    effect: Effect
    value: float = Field(description="Share of all items, adjusted for chance as published.")
    more_than: int = Field(description="Number of published pairs with a smaller value.")
    of: int = Field(description="Number of published pairs with a value.")
    nearest: str = Field(description="The published pair with the nearest value.")


class Placement(Value):
    """Rank of a pair among the published pairs."""

    schema_version: int = PLACE_VERSION
    before: str
    after: str
    sentence: str
    values: list[PlacedValue]
    notices: list[Notice]


def place_pair(before: Any, after: Any, **options: Any) -> Placement:
    """Rank a pair of runs among the 31 published pairs.

    Args:
        before: run of the model before, as for `compare`.
        after: run of the model after, as for `compare`.
        options: options of `compare`.
    """
    comparison = compare(before, after, rollup="post-forget", **options)
    rolled = {group.name: group.mean for group in comparison.result.rolled_up or []}
    result = comparison.result
    effects: tuple[Effect, ...] = ("forgetting", "backward_transfer")
    return place_values(
        {
            effect: {
                TOTAL if name == _ROLLED_TOTAL else name: mean[effect]
                for name, mean in rolled.items()
            }
            for effect in effects
        },
        before=result.before.name,
        after=result.after.name,
    )


def place_values(
    values: Mapping[Effect, Mapping[str, float]], *, before: str = "BEFORE", after: str = "AFTER"
) -> Placement:
    """The same for known values: by effect and category, with the total as `total`."""
    pairs = _pairs()
    known = {name for pair in pairs for name in pair.forgetting}
    placed = [
        _place(effect, name, value, pairs)
        for effect, by_name in values.items()
        for name, value in by_name.items()
        if name in known
    ]
    total = [one for one in placed if one.category == TOTAL]
    sentences = [
        f"more {one.effect.replace('_', ' ')} than {one.more_than} of {one.of}" for one in total
    ]
    notices = []
    if not any(one.category != TOTAL for one in placed):
        notices.append(
            Notice(
                "other_tasks",
                "none of the categories belongs to the published study: totals are over other "
                "tasks, so ranks are not comparable.",
            )
        )
    return Placement(
        before=before,
        after=after,
        sentence=f"Among the published pairs: {' and '.join(sentences)}.",
        values=placed,
        notices=notices,
    )


def tell_placement(placement: Placement) -> Blocks:
    """Describe the rank of a pair."""
    rows = [
        (
            one.category,
            one.effect.replace("_", " "),
            points(one.value).removesuffix(" points"),
            f"{one.more_than} of {one.of}",
            one.nearest,
        )
        for one in placement.values
    ]
    heads = ("category", "effect", "points", "more than", "nearest")
    return [
        Line(f"{placement.before} -> {placement.after}", "strong"),
        Line(placement.sentence),
        Line(),
        Sheet(heads, rows, spare=("nearest",)),
        *(Line(notice.message, "warning", lead="!") for notice in placement.notices),
    ]


def _pairs() -> list[PublishedPair]:
    """Return the published pairs without merges."""
    models = {model.id for model in published_study().models}
    return [pair for pair in published_pairs() if pair.after in models]


def _place(effect: Effect, category: str, value: float, pairs: list[PublishedPair]) -> PlacedValue:
    others = {
        pair.label: getattr(pair, effect)[category]
        for pair in pairs
        if category in getattr(pair, effect)
    }
    return PlacedValue(
        category=category,
        effect=effect,
        value=value,
        more_than=sum(other < value for other in others.values()),
        of=len(others),
        nearest=min(others, key=lambda label: abs(others[label] - value)),
    )
