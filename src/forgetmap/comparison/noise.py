"""How much reruns of one model flip, as measured by others: for words, never for a verdict."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files

from forgetmap.text import share


@dataclass(frozen=True, slots=True)
class MeasuredNoise:
    """Share of items that a rerun of the same model flips one way.

    Attributes:
        decoding: `greedy`, `sampled`, or `unknown` where the source does not say.
        benchmark: name of the benchmark, with the engine or temperature.
        low: smallest measured share.
        high: largest measured share.
        source: where it was measured.
    """

    decoding: str
    benchmark: str
    low: float
    high: float
    source: str


@lru_cache(maxsize=1)
def measured_noise() -> tuple[MeasuredNoise, ...]:
    """Return the measured reruns, with their sources."""
    text = files("forgetmap.comparison").joinpath("data/noise.toml").read_text(encoding="utf-8")
    return tuple(MeasuredNoise(**row) for row in tomllib.loads(text)["rerun"])


def typical_noise() -> str:
    """Return the range of measured reruns in words; those of unknown decoding are left out."""
    ranges = []
    for decoding, words in (("greedy", "greedy"), ("sampled", "sampled at T = 0.7")):
        rows = [row for row in measured_noise() if row.decoding == decoding]
        low, high = min(row.low for row in rows), max(row.high for row in rows)
        ranges.append(f"{words} {100 * low:.2g} to {share(high)}")
    return ", ".join(ranges)


def noise_words(floor: float) -> str:
    """Return a stated noise floor in words."""
    return f"reruns flip at most {share(floor)} of the items one way"
