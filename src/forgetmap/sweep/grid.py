"""The merges of a sweep: methods, weights, and the recipe of each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal
from difflib import get_close_matches
from typing import TYPE_CHECKING, NamedTuple

from forgetmap.errors import UsageError

if TYPE_CHECKING:
    from forgetmap.merge import Recipe

MAX_WEIGHTS = 1001
"""Maximum number of weights of a sweep."""
DEFAULT_DENSITY = 0.5
"""Default share of changes that sparse methods keep."""
WEIGHTS_HINT = "use START:STOP:STEP such as 0:1:0.1, or values such as 0.2,0.5,0.8."


class Merge(NamedTuple):
    """One merge of base and tuned; `weight` is the share of the tuned model."""

    method: str
    weight: float

    @property
    def name(self) -> str:
        """Name for files."""
        return f"{self.method}-{self.weight:g}"

    @property
    def parent(self) -> str | None:
        """The parent that equals the merge bit for bit, if any."""
        if self.weight == 0:
            return "base"
        return "tuned" if self.weight == 1 and self.method in _TO_THE_END else None


def parse_weights(text: str) -> tuple[float, ...]:
    """Parse `0:1:0.1` or `0.2,0.8` as shares of the tuned model, sorted, each once."""
    try:
        if ":" in text:
            start, stop, step = (Decimal(part.strip()) for part in text.split(":"))
            count = int((stop - start) / step) + 1
        else:
            return check_weights([float(part) for part in text.split(",")])
    except (ValueError, ArithmeticError):
        raise UsageError(f"{text!r} contains no weights", hint=WEIGHTS_HINT) from None
    if step <= 0 or not 0 < count <= MAX_WEIGHTS:
        raise UsageError(f"{text!r} contains no weights", hint=WEIGHTS_HINT)
    return check_weights([float(start + step * index) for index in range(count)])


def check_weights(weights: Sequence[float]) -> tuple[float, ...]:
    """Return weights sorted, each once; all must be between 0 and 1."""
    if not weights or not all(0 <= weight <= 1 for weight in weights):
        text = ", ".join(f"{weight:g}" for weight in weights[:5])
        raise UsageError(
            f"weights must be shares of the tuned model between 0 and 1, not {text or 'none'}",
            hint=WEIGHTS_HINT,
        )
    return tuple(sorted(set(weights)))


def check_methods(methods: Sequence[str]) -> tuple[str, ...]:
    """Check that methods have a path from base to tuned."""
    for method in methods:
        if method not in PATHS:
            near = get_close_matches(method, PATHS, n=1)
            guess = f"did you mean {near[0]}? " if near else ""
            raise UsageError(
                f"{method!r} has no path from one model to another",
                hint=f"{guess}choose from {', '.join(PATHS)}.",
            )
    if not methods:
        raise UsageError("a sweep needs a method", hint=f"choose from {', '.join(PATHS)}.")
    return tuple(dict.fromkeys(methods))


Weights = str | Sequence[float] | Sequence[str]
"""`START:STOP:STEP` or numbers, for all methods; or one such text for each method."""


def merges_of(methods: Sequence[str], weights: Weights) -> list[Merge]:
    """Return every method at its weights, each path with both its ends."""
    checked = check_methods(methods)
    grids = _grids(weights, len(checked))
    return [
        Merge(method, weight)
        for method, grid in zip(checked, grids, strict=True)
        for weight in sorted({*grid, 0.0, 1.0})
    ]


def _grids(weights: Weights, methods: int) -> list[tuple[float, ...]]:
    if isinstance(weights, str):
        return [parse_weights(weights)] * methods
    texts = [weight for weight in weights if isinstance(weight, str)]
    if not texts:
        return [check_weights([float(weight) for weight in weights])] * methods
    if len(texts) not in (1, methods) or len(texts) < len(weights):
        raise UsageError(
            f"there are {len(weights)} grids of weights for {methods} methods",
            hint="give --weights once for all methods, or once per method in their order.",
        )
    grids = [parse_weights(text) for text in texts]
    return grids if len(grids) == methods else grids * methods


def recipe_of(merge: Merge, base: str, tuned: str, *, density: float, seed: int) -> Recipe:
    """Return the recipe of a merge."""
    from forgetmap.merge import Recipe  # pydantic, yaml

    spec = PATHS[merge.method](base, tuned, merge.weight, density)
    return Recipe.model_validate({"method": merge.method, "seed": seed, **spec})


Spec = dict[str, object]


def _linear(base: str, tuned: str, weight: float, _: float) -> Spec:
    # 0.1, not 0.09999999999999998
    parts = ((base, round(1 - weight, 12)), (tuned, weight))
    return {
        "models": [{"model": model, "parameters": {"weight": share}} for model, share in parts],
    }


def _between(parameter: str) -> Callable[[str, str, float, float], Spec]:
    def make_spec(base: str, tuned: str, weight: float, _: float) -> Spec:
        return {"base": base, "models": [{"model": tuned}], "parameters": {parameter: weight}}

    return make_spec


def _changes(*, thin: bool) -> Callable[[str, str, float, float], Spec]:
    """Add `lambda` times the change to the base; methods that thin it out keep `density` of it."""

    def make_spec(base: str, tuned: str, weight: float, density: float) -> Spec:
        parameters = {"weight": 1.0, **({"density": density} if thin else {})}
        part = {"model": tuned, "parameters": parameters}
        return {"base": base, "models": [part], "parameters": {"lambda": weight}}

    return make_spec


PATHS: dict[str, Callable[[str, str, float, float], Spec]] = {
    "linear": _linear,
    "slerp": _between("t"),
    "wise_ft": _between("alpha"),
    "task_arithmetic": _changes(thin=False),
    "ties": _changes(thin=True),
    "dare_linear": _changes(thin=True),
    "dare_ties": _changes(thin=True),
    "breadcrumbs": _changes(thin=True),
    "breadcrumbs_ties": _changes(thin=True),
}
_TO_THE_END = {"linear", "slerp", "wise_ft", "task_arithmetic"}
"""Methods that give the tuned model at weight 1; the others thin out its change."""
