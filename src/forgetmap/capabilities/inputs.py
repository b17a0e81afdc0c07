"""Models of a drift with their labels, and the pairs to compare: stars, pairs and chains."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from forgetmap.errors import UsageError

ARROW = " \N{RIGHTWARDS ARROW} "
"""Separator of two models if the name of the later one does not show its model before."""
_PATH_SIGNS = ("/", "\\")


class LabelledInput(NamedTuple):
    """An input for a model.

    Attributes:
        label: name of the model; None leaves it to its files.
        source: path, dataframe or run.
    """

    label: str | None
    source: Any


class Compared(NamedTuple):
    """Two indices in the list of inputs: the model before and the model after."""

    before: int
    after: int


@dataclass(frozen=True, slots=True)
class DriftPlan:
    """The comparisons of a drift.

    Attributes:
        inputs: every model once.
        comparisons: comparisons in the order of the columns.
        chain: whether each model was trained from the one before it.
    """

    inputs: tuple[LabelledInput, ...]
    comparisons: tuple[Compared, ...]
    chain: bool = False

    @property
    def bases(self) -> set[int]:
        """Indices of the models that others are compared with."""
        return {compared.before for compared in self.comparisons}


def read_label(given: Any) -> LabelledInput:
    """Split NAME=PATH, or a pair of a name and a source; anything else has no label.

    An existing path is a path, whatever characters are in it, and a name has no slash.
    """
    if isinstance(given, LabelledInput):
        return given
    if isinstance(given, tuple) and len(given) == len(LabelledInput._fields):
        return LabelledInput(str(given[0]), given[1])
    if not isinstance(given, str) or Path(given).exists():
        return LabelledInput(None, given)
    name, equals, path = given.partition("=")
    if not equals or not name.strip() or not path or any(sign in name for sign in _PATH_SIGNS):
        return LabelledInput(None, given)
    return LabelledInput(name.strip(), path)


def plan_drift(
    inputs: Sequence[Any], pairs: Sequence[tuple[Any, Any]] = (), *, chain: bool = False
) -> DriftPlan:
    """Compare every model with the first, or with the one before it; then the pairs.

    Args:
        inputs: the model before and those after it; may be empty if there are pairs.
        pairs: pairs of a model before and its model after.
        chain: whether each model was trained from the one before it.

    Raises:
        UsageError: there is nothing to compare, too few models for a chain, or one label for two
            models.
    """
    entries = [read_label(source) for source in inputs]
    many = len(entries)
    if chain and many < len(("before", "between", "after")):
        raise UsageError(
            "a chain needs at least three models",
            hint="give BEFORE and two or more AFTER, in the order of training.",
        )
    if many == 1 or not (entries or pairs):
        raise UsageError(
            "there is nothing to compare", hint="give BEFORE and AFTER, or --pair BEFORE AFTER."
        )
    comparisons = _chain(many) if chain else [Compared(0, place) for place in range(1, many)]
    for before, after in pairs:
        places = [_index_of(entries, read_label(side)) for side in (before, after)]
        comparisons.append(Compared(*places))
    _require_unique([part.label for part in entries if part.label is not None])
    return DriftPlan(tuple(entries), tuple(dict.fromkeys(comparisons)), chain)


def _require_unique(names: Sequence[str]) -> None:
    for name, count in Counter(names).most_common(1):
        if count > 1:
            raise UsageError(
                f"{count} models have the name {name!r}",
                hint="give each a unique name: NAME=PATH.",
            )


def _index_of(entries: list[LabelledInput], part: LabelledInput) -> int:
    """Return the index of this input in the list, to which a new one is added."""
    for place, other in enumerate(entries):
        are_paths = all(isinstance(one.source, str | os.PathLike) for one in (part, other))
        # Only paths are compared, because dataframes define equality in their own way.
        is_same = part.source is other.source or (are_paths and part.source == other.source)
        if is_same and part.label == other.label:
            return place
    entries.append(part)
    return len(entries) - 1


def _chain(many: int) -> list[Compared]:
    """Return the step of every model, and its comparison with the first."""
    comparisons = [Compared(0, 1)]
    for place in range(2, many):
        comparisons += [Compared(place - 1, place), Compared(0, place)]
    return comparisons


def column_names(plan: DriftPlan, labels: Sequence[str]) -> list[str]:
    """Return the name of each comparison: the model after, with the one before if necessary.

    Raises:
        UsageError: two would have the same name.
    """
    times = Counter(compared.after for compared in plan.comparisons)
    first = plan.comparisons[0].before
    names = [
        labels[after]
        if times[after] == 1 or before == first
        else f"{labels[before]}{ARROW}{labels[after]}"
        for before, after in plan.comparisons
    ]
    _require_unique(names)
    return names


def base_name(plan: DriftPlan, labels: Sequence[str]) -> str:
    """Return the name of the model before; several in the order in which they first occur."""
    if plan.chain:
        return labels[0]
    return ", ".join(dict.fromkeys(labels[before] for before, _ in plan.comparisons))
