"""Parameters of conditions with their valid ranges."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final, Literal, get_args

from forgetmap.errors import FieldError
from forgetmap.theory import mixtures

ConditionMethod = Literal["sdft", "ttt-discover", "oapl", "rl", "sft"]
"""Post-training methods with conditions."""
METHODS_WITH_CONDITIONS: Final[tuple[ConditionMethod, ...]] = get_args(ConditionMethod)
"""Names of these methods."""
NUMBERS_OF_ALL: Final = ("start", "floor", "separation", "tolerance", "offset", "measured")
"""Numbers of every method."""
NUMBERS_OF_METHOD: Final[dict[ConditionMethod, tuple[str, ...]]] = {
    "sft": ("fraction", "bias"),
    "rl": ("old_share", "temperature", "gap", "slope"),
    "sdft": ("anchor", "demo_weight", "demo_shift"),
    "ttt-discover": ("eta", "strength", "gap", "slope"),
    "oapl": ("gap", "t1", "t2", "refreshes", "slope"),
}
"""Further numbers of each method."""
MOST_REFRESHES: Final = 400
LEAST, MOST = 1e-9, 1e9
"""Range of temperatures, rewards and distances; numbers beyond it are unrealistic and overflow."""
ROUNDING: Final = 1e-12
"""Relative difference of two sides that counts as rounding."""


@dataclass(frozen=True)
class ConditionNumbers:
    """Parameters of the conditions.

    Attributes:
        start: old mass of the model before.
        floor: old mass to keep.
        separation: distance of old and new behaviour, in standard deviations of one mode.
        tolerance: acceptable drift, in standard deviations.
        offset: how far the new component starts from the new mode, towards the old one.
        measured: measured old mass of the model after, if available.
        fraction: fraction of replayed old data (sft).
        bias: distance of replayed data from the old mode (sft).
        old_share: weight of the old mode in the target; 0 if the target does not contain it (rl).
        temperature: temperature of a KL penalty to the model before, which defines the target; None
            for the true target (rl).
        gap: reward of new minus reward of old behaviour (rl, ttt-discover, oapl).
        slope: slope of the rewards on old behaviour, per standard deviation (rl, ttt-discover,
            oapl).
        anchor: strength of the anchor of the teacher to the demonstrations, 0 to 1 (sdft).
        demo_weight: old mass of the demonstration-conditioned teacher (sdft).
        demo_shift: distance of the old behaviour of that teacher from the old mode (sdft).
        eta: inverse temperature of the utility (ttt-discover).
        strength: strength of the KL penalty (ttt-discover).
        t1: temperature of the soft maximum (oapl).
        t2: temperature of the regression (oapl).
        refreshes: number of refreshes of the lagged policy (oapl).
    """

    start: float = 0.5
    floor: float = 0.1
    separation: float = 5.0
    tolerance: float = 0.25
    offset: float = 1.0
    measured: float | None = None
    fraction: float = 0.0
    bias: float = 0.0
    old_share: float = 0.5
    temperature: float | None = None
    gap: float = 1.0
    slope: float = 0.0
    anchor: float = 0.2
    demo_weight: float = 0.5
    demo_shift: float = 0.0
    eta: float = 2.0
    strength: float = 0.5
    t1: float = 1.0
    t2: float = 1.0
    refreshes: int = 1

    def __post_init__(self) -> None:
        for name in ("start", "floor"):
            mixtures.check_share(getattr(self, name), name)
        mixtures.check_separation(self.separation)
        mixtures.check_positive(self.tolerance, "tolerance")
        for name in ("eta", "t1", "t2", "temperature"):
            if getattr(self, name) is not None:
                between = f"from {LEAST:g} to below {MOST:g}"
                _check_between(getattr(self, name), name, (LEAST, MOST), between)
        for name in ("fraction", "old_share", "demo_weight"):
            _check_between(getattr(self, name), name, (0.0, 1.0), "at least 0 and below 1")
        _check_between(self.anchor, "anchor", (0.0, 1.0 + ROUNDING), "from 0 to 1")
        for name in ("gap", "strength"):
            _check_between(getattr(self, name), name, (0.0, MOST), f"at least 0 and below {MOST:g}")
        if 0 < self.strength < LEAST:
            _check_between(self.strength, "strength", (LEAST, MOST), f"0 or at least {LEAST:g}")
        whole = MOST_REFRESHES if hasattr(self.refreshes, "__index__") else 0
        _check_between(
            self.refreshes, "refreshes", (0, whole), f"a whole number below {MOST_REFRESHES}"
        )
        for name in ("bias", "slope", "demo_shift"):
            within = f"between {-MOST:g} and {MOST:g}"
            _check_between(getattr(self, name), name, (-MOST, MOST), within)
        _check_offset(self.offset, self.separation)
        if self.measured is not None:
            _check_between(self.measured, "measured", (0.0, 1.0 + ROUNDING), "from 0 to 1")

    @property
    def nearest(self) -> float:
        """Smallest distance of the components at the start or the end."""
        return self.separation - max(self.offset, 0.0)

    @property
    def farthest(self) -> float:
        """Largest distance of the components at the start or the end."""
        return self.separation - min(self.offset, 0.0)


def _check_between(value: float, name: str, between: tuple[float, float], limits: str) -> None:
    low, high = between
    if not (low <= value < high and math.isfinite(value)):
        raise FieldError(
            f"{name} is {value:g}, but must be {limits}",
            field=name,
            hint=f"use a number such as {_example_of(name)}.",
        )


def _check_offset(offset: float, separation: float) -> None:
    if not -MOST < offset < separation:
        raise FieldError(
            f"offset is {offset:g}, but must be below the separation of {separation:g} and finite",
            field="offset",
            hint="use a smaller one; 0 starts the new component at the new mode.",
        )


def _example_of(name: str) -> str:
    """Return the default as an example value."""
    default = ConditionNumbers.__dataclass_fields__[name].default
    return "0.3" if default is None else f"{default:g}"
