"""Reference merge methods in plain numpy and double precision, from the formulas of papers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]


def linear(models: Sequence[Array], weights: Sequence[float], *, normalize: bool = True) -> Array:
    """Return the weighted model soup: sum of w x over sum of w."""
    total: Array = np.einsum("m,m...->...", np.array(weights), np.stack(models))
    return total / sum(weights) if normalize else total


def ema(models: Sequence[Array], decay: float) -> Array:
    """Apply m <- decay m + (1 - decay) x model by model."""
    mean = models[0]
    for model in models[1:]:
        mean = decay * mean + (1 - decay) * model
    return mean


def slerp(base: Array, model: Array, t: float) -> Array:
    """Interpolate by Shoemake's formula: (sin((1-t) w) base + sin(t w) model) / sin w."""
    units = base / np.linalg.norm(base), model / np.linalg.norm(model)
    # From half the chord, which is exact where the arc cosine is not.
    angle = 2 * np.arctan2(np.linalg.norm(units[0] - units[1]), np.linalg.norm(units[0] + units[1]))
    arc: Array = (np.sin((1 - t) * angle) * base + np.sin(t * angle) * model) / np.sin(angle)
    return arc


def task_arithmetic(
    base: Array, models: Sequence[Array], weights: Sequence[float], scale: float = 1.0
) -> Array:
    """Return theta + lambda sum of w tau."""
    return base + scale * sum(w * (model - base) for w, model in zip(weights, models, strict=True))


def trimmed(change: Array, density: float) -> Array:
    """Apply step 1 of TIES: keep the largest values; of equal ones the first."""
    flat = change.ravel()
    order = sorted(range(flat.size), key=lambda place: (-abs(flat[place]), place))
    stay = order[: max(int(density * flat.size), 1 if density else 0)]
    result = np.zeros_like(flat)
    result[stay] = flat[stay]
    return result.reshape(change.shape)


def middle(change: Array, density: float, gamma: float) -> Array:
    """Apply Breadcrumbs: drop the largest `gamma`, keep the next largest up to `density`."""
    flat = change.ravel()
    order = sorted(range(flat.size), key=lambda place: (-abs(flat[place]), place))
    stay = int(density * flat.size)
    top = min(int(gamma * flat.size), flat.size - stay)
    result = np.zeros_like(flat)
    result[order[top : top + stay]] = flat[order[top : top + stay]]
    return result.reshape(change.shape)


def elected(changes: Sequence[Array], weights: Sequence[float], *, normalize: bool = True) -> Array:
    """Apply steps 2 and 3 of TIES value by value: take the sign with the greater mass, and the mean
    of the values with that sign."""
    result = np.zeros(changes[0].size)
    for place in range(result.size):
        votes: list[Any] = [
            (weight * change.ravel()[place], weight)
            for change, weight in zip(changes, weights, strict=True)
            if change.ravel()[place] != 0
        ]
        up = [vote for vote in votes if vote[0] > 0]
        down = [vote for vote in votes if vote[0] < 0]
        lead = sum(v for v, _ in up) + sum(v for v, _ in down)
        if lead:
            heavier = up if lead > 0 else down
            total = sum(v for v, _ in heavier)
            result[place] = total / sum(w for _, w in heavier) if normalize else total
    return result.reshape(changes[0].shape)


def model_stock(base: Array, models: Sequence[Array]) -> Array:
    """Return t times the mean plus 1 - t times the base, with t = N cos / (1 + (N - 1) cos)."""
    changes = [(model - base).ravel() for model in models]
    cosines = [
        one @ other / (np.linalg.norm(one) * np.linalg.norm(other))
        for at, one in enumerate(changes)
        for other in changes[at + 1 :]
    ]
    cosine, count = float(np.mean(cosines)), len(models)
    t = count * cosine / (1 + (count - 1) * cosine)
    merged: Array = t * np.mean(models, axis=0) + (1 - t) * base
    return merged
