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
"""Between two models where the name of the later one does not say what it is compared with."""
_PATH_SIGNS = ("/", "\\")


class LabelledInput(NamedTuple):
    """What was given for a model.

    Attributes:
        label: what it is to be called; None leaves that to its files.
        source: path, dataframe or run.
    """

    label: str | None
    source: Any


class Compared(NamedTuple):
    """Two places in the list of inputs: the model before and the model after."""

    before: int
    after: int


@dataclass(frozen=True, slots=True)
class DriftPlan:
    """What is compared with what.

    Attributes:
        inputs: every model once.
        comparisons: in the order of the columns.
        chain: whether each model goes on from the one before it.
    """

    inputs: tuple[LabelledInput, ...]
    comparisons: tuple[Compared, ...]
    chain: bool = False

    @property
    def bases(self) -> set[int]:
        """The models that others are compared with."""
        return {compared.before for compared in self.comparisons}


def read_label(given: Any) -> LabelledInput:
    """NAME=PATH, or a pair of a name and a source, apart; anything else has no label.

    A path that exists is one, whatever signs are in it, and no name has a slash in it.
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
    """Every model after the first against it, or against the one before it; then the pairs.

    Args:
        inputs: the model before and those after it; none, where there are pairs.
        pairs: of a model before and its model after.
        chain: whether each model goes on from the one before it.

    Raises:
        UsageError: there is nothing to compare, not enough for a chain, or one label for two.
    """
    given = [read_label(source) for source in inputs]
    many = len(given)
    if chain and many < len(("before", "between", "after")):
        raise UsageError(
            "a chain needs at least three models",
            hint="give BEFORE and two or more AFTER, in the order of training.",
        )
    if many == 1 or not (given or pairs):
        raise UsageError(
            "there is nothing to compare", hint="give BEFORE and AFTER, or --pair BEFORE AFTER."
        )
    comparisons = _chain(many) if chain else [Compared(0, place) for place in range(1, many)]
    for before, after in pairs:
        places = [_place(given, read_label(side)) for side in (before, after)]
        comparisons.append(Compared(*places))
    _require_unique([part.label for part in given if part.label is not None])
    return DriftPlan(tuple(given), tuple(dict.fromkeys(comparisons)), chain)


def _require_unique(names: Sequence[str]) -> None:
    for name, count in Counter(names).most_common(1):
        if count > 1:
            raise UsageError(
                f"{count} models have the name {name!r}",
                hint="give each a unique name: NAME=PATH.",
            )


def _place(given: list[LabelledInput], part: LabelledInput) -> int:
    """Where this input stands in the list; it is added where it is new."""
    for place, other in enumerate(given):
        are_paths = all(isinstance(one.source, str | os.PathLike) for one in (part, other))
        # What is no path is not compared: dataframes have an idea of their own of being equal.
        is_same = part.source is other.source or (are_paths and part.source == other.source)
        if is_same and part.label == other.label:
            return place
    given.append(part)
    return len(given) - 1


def _chain(many: int) -> list[Compared]:
    """Of every model its step, and where it stands against the first."""
    comparisons = [Compared(0, 1)]
    for place in range(2, many):
        comparisons += [Compared(place - 1, place), Compared(0, place)]
    return comparisons


def column_names(plan: DriftPlan, labels: Sequence[str]) -> list[str]:
    """What each comparison is called: the model after, with the one before where that is needed.

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
    """The model before; of several all, in the order in which they first occur."""
    if plan.chain:
        return labels[0]
    return ", ".join(dict.fromkeys(labels[before] for before, _ in plan.comparisons))
